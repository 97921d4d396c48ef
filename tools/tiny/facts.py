"""Facts that a user tells, and questions that recall them later in the chat."""
import pools as P

# kind: (draw a value, statements, questions, answer, answer when nothing was told)
_NAME = ("My name is {v}.|My name is {v}.|I am {v}.|I'm {v}.|Call me {v}.|You can call me {v}.|People call me {v}.|{v} is my name.|This is {v}.|"
         "My name's {v}.|Please call me {v}.|Hi, I'm {v}.|Hello, my name is {v}.|I am called {v}.|It's me, {v}.|The name is {v}.")
_NAME_Q = ("What is my name?|What is my name?|What's my name?|Do you remember my name?|Who am I?|Tell me my name.|Can you tell me my name?|"
           "What did I say my name was?|What am I called?|Do you know my name?|Say my name.|What was my name again?|"
           "Do you still know my name?|Who are you talking to?|Please tell me my name.|Remind me of my name.|Do you know who I am?|"
           "What name did I give you?|Have you forgotten my name?|How should you call me?|Repeat my name.")
SPEC = {
    "name": (P.person, _NAME, _NAME_Q, "Your name is {v}.", "You have not told me your name."),
    "age": (lambda r: str(r.randint(5, 95)), "I am {v} years old.|I'm {v}.|I'm {v} years old.|My age is {v}.|I turned {v} this year.|I am {v}.",
            "How old am I?|How old am I?|What is my age?|Do you remember how old I am?|Tell me my age.|What age am I?|Do you know my age?|"
            "How many years old am I?|What's my age?|Did I say how old I am?", "You are {v} years old.", "You have not told me your age."),
    "city": (P.city, "I live in {v}.|I live in {v}.|My home is in {v}.|I am living in {v}.|I moved to {v}.|My city is {v}.|I have a flat in {v}.|My home town is {v}.",
             "Where do I live?|Where do I live?|Which city do I live in?|What city do I live in?|Where is my home?|Do you remember where I live?|"
             "In which town do I live?|Tell me where I live.|Where did I say I live?|What is my city?|What city am I in?|Do you know where I live?",
             "You live in {v}.", "You have not told me where you live."),
    "from": (lambda r: r.choice(P.COUNTRIES + P.CITIES), "I come from {v}.|I am from {v}.|I'm from {v}.|I was born in {v}.|I grew up in {v}.",
             "Where am I from?|Where do I come from?|Where was I born?|What is my home country?|Do you remember where I come from?|"
             "Tell me where I am from.|Which place am I from?", "You are from {v}.", "You have not told me where you are from."),
    "job": (lambda r: r.choice(P.JOBS), "I am {av}.|I work as {av}.|I'm {av}.|My job is {v}.|I am {av} by trade.|I earn my living as {av}.|By profession I am {av}.",
            "What is my job?|What do I do?|What do I work as?|What do I do for a living?|What is my profession?|Do you remember my job?|"
            "What's my job?|What work do I do?|What is my occupation?|Tell me what my job is.|What did I say my job is?",
            "You are {av}.", "You have not told me what your job is."),
    "colour": (lambda r: r.choice(P.COLOURS), "My favourite colour is {v}.|My favorite color is {v}.|I like the colour {v} best.|The color I like most is {v}.|{v} is my favorite color.|{v} is my favourite colour.",
               "What is my favourite colour?|What is my favorite color?|What's my favorite color?|Which colour do I like best?|Do you remember my favourite colour?|"
               "What color do I like?|Tell me my favorite color.|Which color is my favorite?|What colour do I like most?",
               "Your favourite colour is {v}.", "You have not told me your favourite colour."),
    "food": (lambda r: r.choice(P.FOODS), "My favourite food is {v}.|My favorite food is {v}.|The food I like best is {v}.|I like {v} more than any other food.",
             "What is my favourite food?|What is my favorite food?|What food do I like best?|What do I like to eat?|Do you remember my favorite food?|"
             "Which food do I like most?|What's my favourite dish?|Tell me my favourite food.", "Your favourite food is {v}.", "You have not told me your favourite food."),
    "hobby": (lambda r: r.choice(P.HOBBIES), "My hobby is {v}.|In my free time I enjoy {v}.|I love {v}.|I enjoy {v}.|My favourite hobby is {v}.",
              "What is my hobby?|What do I enjoy?|What do I do in my free time?|What do I love?|Do you remember my hobby?|Which hobby do I have?|What's my hobby?|What do I like doing?",
              "Your hobby is {v}.", "You have not told me about a hobby."),
    "language": (lambda r: r.choice(P.LANGUAGES), "I speak {v}.|My mother tongue is {v}.|My native language is {v}.|At home we speak {v}.|I am learning {v}.",
                 "Which language do I speak?|What language do I speak?|What is my native language?|What is my mother tongue?|Do you remember my language?|What is my language?",
                 "Your language is {v}.", "You have not told me which language you speak."),
    "birthday": (lambda r: f"{r.choice(P.MONTHS)}" if r.random() < .4 else f"{r.randint(1, 28)} {r.choice(P.MONTHS)}",
                 "My birthday is in {v}.|My birthday is {v}.|I was born on {v}.|My birth date is {v}.",
                 "When is my birthday?|When was I born?|What is my birthday?|Do you remember my birthday?|When do I have my birthday?|Which date is my birthday?",
                 "Your birthday is {v}.", "You have not told me your birthday."),
    "car": (lambda r: r.choice(P.CARS), "I drive {av}.|My car is {av}.|I have {av}.|I bought {av}.",
            "What car do I drive?|Which car do I have?|What is my car?|What do I drive?|What kind of car do I have?|Do you remember my car?",
            "You drive {av}.", "You have not told me about your car."),
}
ATTRIBUTES = """phone number|room number|house number|seat number|order number|lucky number|ticket number|locker code|door code|PIN|password|
secret word|code word|username|nickname|middle name|last name|surname|street|school|company|team|favourite book|favourite film|favorite movie|favorite song|
favourite band|favourite season|favourite animal|favorite animal|favorite sport|favourite sport|favourite drink|favorite drink|favourite city|favorite number|favourite day|favourite fruit|
favorite month|favourite subject|shoe size|height|weight|flight number|bus line|gate|table number|account name|project|cat's name|dog's name|
boat's name|horse's name|parrot's name|hotel|train|destination|deadline|appointment|budget|score|goal|doctor|bank|email|floor""".replace("\n", "").split("|")


def a(word):
    return ("an " if word[0] in "aeiouAEIO" else "a ") + word


def attribute_value(rng, attr, words):
    last = attr.split()[-1]
    if last in ("number", "code", "PIN", "size", "height", "weight", "gate", "score", "floor", "budget"):
        return P.digits(rng, rng.choice([1, 2, 2, 3, 4, 4, 5, 6]))
    special = {"season": P.SEASONS, "animal": P.ANIMALS, "sport": P.SPORTS, "drink": P.DRINKS, "city": P.CITIES, "destination": P.CITIES,
               "day": P.DAYS, "month": P.MONTHS, "fruit": ["apples", "pears", "plums", "mangoes", "cherries", "grapes"],
               "deadline": P.DAYS, "appointment": P.DAYS, "name": P.PET_NAMES + P.NAMES, "surname": P.SURNAMES, "doctor": P.NAMES}
    if last in special and rng.random() < 0.85:
        return rng.choice(special[last])
    return P.invented(rng).capitalize() if rng.random() < 0.3 else rng.choice(words)


def fact_about_user(rng, kind):
    draw, said, asked, ans, none = SPEC[kind]
    v = draw(rng)
    st = rng.choice(said.split("|")).format(v=v, av=a(v))
    st = st[0].upper() + st[1:]
    ack = f"Nice to meet you, {v}!" if kind == "name" else "Thank you, I will remember that."
    return dict(key=kind, say=st, ask=asked.split("|"), answer=ans.format(v=v, av=a(v)), ack=ack, none=none)


def fact_attribute(rng, words):
    attr = rng.choice(ATTRIBUTES) if rng.random() < 0.8 else rng.choice(words).lower()
    v = attribute_value(rng, attr, words)
    say = rng.choice(["My {a} is {v}.", "My {a} is {v}.", "Remember that my {a} is {v}.", "Please remember: my {a} is {v}.", "{v} is my {a}.",
                      "Note that my {a} is {v}.", "By the way, my {a} is {v}."]).format(a=attr, v=v)
    ask = [f"What is my {attr}?", f"What's my {attr}?", f"Do you remember my {attr}?", f"Tell me my {attr}.", f"Can you tell me my {attr}?",
           f"Which {attr} do I have?", f"What did I say my {attr} is?", f"What was my {attr} again?", f"Do you know my {attr}?", f"Remind me of my {attr}."]
    return dict(key=attr, say=say[0].upper() + say[1:], ask=ask, answer=f"Your {attr} is {v}.", ack="Thank you, I will remember that.",
                none=f"You have not told me your {attr}.")


def fact_the(rng, words):
    """The wifi password, the code of the door, the name of the ship ..."""
    what = rng.choice(["code", "password", "secret number", "secret word", "magic word", "meeting room", "wifi password", "wifi code", "address",
                       "number", "winner", "answer", "leader", "captain", "name of the ship", "name of the cat", "price", "key", "platform",
                       "code of the door", "name of the hotel", "name of the project", "room", "boss", "time of the meeting", "word of the day"])
    last = what.split()[-1] if "of the" not in what else what.split()[0]
    v = P.clock(rng) if last == "time" else P.digits(rng, rng.choice([2, 3, 4, 4, 5])) if last in ("code", "number", "price", "platform", "room") or rng.random() < .2 \
        else P.person(rng) if last in ("winner", "leader", "captain", "boss", "name") else rng.choice(words)
    say = rng.choice(["The {a} is {v}.", "The {a} is {v}.", "Remember: the {a} is {v}.", "Remember that the {a} is {v}.", "Please remember the {a}: {v}.",
                      "Keep in mind that the {a} is {v}.", "Remember the {a} {v}."]).format(a=what, v=v)
    ask = [f"What is the {what}?", f"What's the {what}?", f"Tell me the {what}.", f"Do you remember the {what}?", f"What was the {what}?",
           f"Can you tell me the {what}?", f"What did I say the {what} was?", f"Which {what} did I give you?", f"Repeat the {what}."]
    return dict(key="the " + what, say=say, ask=ask, answer=f"The {what} is {v}.", ack="Thank you, I will remember that.",
                none=f"You have not told me the {what}.")


def fact_place(rng):
    many = rng.random() < 0.25
    thing = rng.choice(P.PLURALS if many else P.THINGS)
    own = rng.random() < 0.6
    where = rng.choice(["in the ", "in the ", "behind the ", "near the "]) + rng.choice(P.ROOMS) if rng.random() < 0.6 else \
        rng.choice(["on the ", "under the ", "behind the ", "next to the "]) + rng.choice(P.SURFACES)
    det, be = ("My" if own else "The"), ("are" if many else "is")
    you = "Your" if own else "The"
    put = rng.choice([f"{det} {thing} {be} {where}.", f"I put {det.lower()} {thing} {where}.", f"I left {det.lower()} {thing} {where}.",
                      f"{det} {thing} {be} {where}.", f"I keep {det.lower()} {thing} {where}."])
    d = det.lower()
    ask = [f"Where {be} {d} {thing}?", f"Where {be} {d} {thing}?", f"Where did I put {d} {thing}?", f"Where can I find {d} {thing}?", f"Do you know where {d} {thing} {be}?",
           f"Tell me where {d} {thing} {be}.", f"I can't find {d} {thing}. Where {be} {'they' if many else 'it'}?", f"Where did I leave {d} {thing}?"]
    return dict(key="place " + thing, say=put, ask=ask, answer=f"{you} {thing} {be} {where}.", ack="OK, I will remember that.",
                none=f"You have not told me where {'your' if own else 'the'} {thing} {be}.")


def fact_person(rng, words):
    rel = rng.random() < 0.55
    name = P.person(rng)
    who = "my " + rng.choice(P.RELATIONS) if rel and rng.random() < 0.8 else name
    you = who.replace("my ", "your ")
    r = rng.random()
    if who != name and r < 0.45:
        role = who[3:]
        say = rng.choice([f"My {role} is called {name}.", f"My {role}'s name is {name}.", f"{name} is my {role}.", f"I have a {role} called {name}.", f"I have a {role} named {name}.", f"My {role} is {name}."])
        ask = [f"What is my {role}'s name?", f"What is my {role} called?", f"Who is my {role}?", f"What's the name of my {role}?", f"Do you remember my {role}'s name?", f"Tell me my {role}'s name."]
        return dict(key=who, say=say, ask=ask, answer=f"Your {role} is called {name}.", ack="Thank you, I will remember that.", none=f"You have not told me your {role}'s name.")
    W, Y = who[0].upper() + who[1:], you[0].upper() + you[1:]
    kind = rng.choice(["city", "job", "food", "age", "pet", "colour", "give"])
    if kind == "city":
        v = P.city(rng); say, ask, ans = f"{W} lives in {v}.", [f"Where does {who} live?", f"In which city does {who} live?", f"What city does {who} live in?"], f"{Y} lives in {v}."
    elif kind == "job":
        v = rng.choice(P.JOBS); say, ask, ans = rng.choice([f"{W} is {a(v)}.", f"{W} works as {a(v)}."]), [f"What is {who}'s job?", f"What does {who} do?", f"What does {who} work as?"], f"{Y} is {a(v)}."
    elif kind == "food":
        v = rng.choice(P.FOODS + P.HOBBIES + P.DRINKS); say, ask, ans = rng.choice([f"{W} likes {v}.", f"{W} loves {v}."]), [f"What does {who} like?", f"What does {who} love?"], f"{Y} likes {v}."
    elif kind == "age":
        v = rng.randint(2, 95); say, ask, ans = rng.choice([f"{W} is {v} years old.", f"{W} is {v}."]), [f"How old is {who}?", f"What is {who}'s age?"], f"{Y} is {v} years old."
    elif kind == "pet":
        v = rng.choice(P.ANIMALS); say, ask, ans = rng.choice([f"{W} has {a(v)}.", f"{W} owns {a(v)}."]), [f"What animal does {who} have?", f"What pet does {who} have?", f"What does {who} have?"], f"{Y} has {a(v)}."
    elif kind == "colour":
        c, t = rng.choice(P.COLOURS), rng.choice(P.THINGS + ["car", "house", "boat"]); say, ask, ans = f"{W} has a {c} {t}.", [f"What colour is {who}'s {t}?", f"What color is {who}'s {t}?"], f"{Y}'s {t} is {c}."
    else:
        v = rng.choice(P.THINGS); say, ask, ans = rng.choice([f"{W} gave me {a(v)}.", f"{W} bought {a(v)}."]), [f"What did {who} give me?"], f"{Y} gave you {a(v)}."
        if "bought" in say:
            ask, ans = [f"What did {who} buy?"], f"{Y} bought {a(v)}."
    return dict(key=f"{who} {kind}", say=say, ask=ask, answer=ans, ack="Thank you, I will remember that.", none=f"You have not told me that about {you}.")


def fact_pet(rng):
    animal, name = rng.choice(P.ANIMALS), rng.choice(P.PET_NAMES)
    if rng.random() < 0.3:
        name = P.invented(rng).capitalize()
    say = rng.choice([f"I have a {animal} called {name}.", f"My {animal} is called {name}.", f"My {animal}'s name is {name}.", f"I have {a(animal)} named {name}.", f"{name} is my {animal}.", f"My pet is a {animal} called {name}."])
    q = rng.random()
    if q < 0.65:
        ask, ans = [f"What is my {animal}'s name?", f"What is my {animal} called?", f"What's the name of my {animal}?", f"What is the name of my pet?", f"How is my {animal} called?", "What is my pet called?", "What is my pet's name?"], f"Your {animal} is called {name}."
    elif q < 0.85:
        ask, ans = ["What pet do I have?", "What animal do I have?", "What kind of pet do I have?", "Do I have a pet?"], f"You have a {animal} called {name}."
    else:
        ask, ans = [f"Who is {name}?"], f"{name} is your {animal}."
    return dict(key="pet", say=say, ask=ask, answer=ans, ack="Thank you, I will remember that.", none=f"You have not told me about a pet.")


def fact_event(rng):
    r, W = rng.random(), rng.choice
    if r < 0.3:
        n, t = W("two three four five six seven eight nine ten".split() + [str(rng.randint(2, 40))]), W("cats dogs brothers sisters children bicycles cousins chairs books plants horses apples coins friends".split())
        return dict(key="have " + t, say=f"I have {n} {t}.", ask=[f"How many {t} do I have?", f"What number of {t} do I have?", f"Do you remember how many {t} I have?"], answer=f"You have {n} {t}.", ack="Thank you, I will remember that.", none=f"You have not told me how many {t} you have.")
    if r < 0.55:
        what = W(["meeting", "exam", "party", "concert", "flight", "train", "dinner", "appointment", "wedding", "lesson", "interview", "game"])
        at = W([f"on {W(P.DAYS)}", f"at {P.clock(rng)}", f"on {W(P.DAYS)} at {P.clock(rng)}", f"in {W(P.MONTHS)}", "tomorrow", f"on {rng.randint(1, 28)} {W(P.MONTHS)}"])
        det = W(["My", "The"])
        return dict(key=what, say=f"{det} {what} is {at}.", ask=[f"When is {det.lower()} {what}?", f"When is {det.lower()} {what}?", f"What time is {det.lower()} {what}?", f"Do you remember when {det.lower()} {what} is?"],
                    answer=f"{'Your' if det == 'My' else 'The'} {what} is {at}.", ack="OK, I will remember that.", none=f"You have not told me when {'your' if det == 'My' else 'the'} {what} is.")
    if r < 0.75:
        v, (past, base) = W(P.FOODS + P.THINGS), W([("bought", "buy"), ("found", "find"), ("lost", "lose"), ("saw", "see"), ("sold", "sell")])
        v = a(v) if v in P.THINGS else v
        when = W(["Yesterday", "Today", "This morning", "Last week", "Last night"])
        return dict(key="event", say=f"{when} I {past} {v}.", ask=[f"What did I {base} {when.lower()}?", f"What did I {base}?", f"Do you remember what I {past}?"], answer=f"You {past} {v}.", ack="OK, I will remember that.", none=f"You have not told me what you {past}.")
    v = W(P.FOODS + P.HOBBIES + P.DRINKS + [x + "s" for x in P.ANIMALS[:8]])
    verb = W(["like", "love", "hate", "want"])
    return dict(key=verb, say=f"I {verb} {v}.", ask=[f"What do I {verb}?", f"Tell me what I {verb}.", f"Do you remember what I {verb}?", f"What did I say I {verb}?"], answer=f"You {verb} {v}.", ack="OK, I will remember that.", none=f"You have not told me what you {verb}.")


def fact(rng, words):
    """One fact: how it is said, asked, answered, acknowledged, and the answer when it was never said."""
    r = rng.random()
    if r < 0.42:
        kind = "name" if rng.random() < 0.3 else rng.choice(list(SPEC))
        return fact_about_user(rng, kind)
    if r < 0.58:
        return fact_attribute(rng, words)
    if r < 0.66:
        return fact_the(rng, words)
    if r < 0.76:
        return fact_place(rng)
    if r < 0.88:
        return fact_person(rng, words)
    if r < 0.94:
        return fact_pet(rng)
    return fact_event(rng)
