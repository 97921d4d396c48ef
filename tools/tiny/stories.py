"""Facts of many shapes: who did what, where things are, when they start, what they cost.

facts.py holds the usual facts about a user; this file varies the grammar, so that the model learns to
read a statement instead of knowing a list of questions.
"""
import pools as P

VERBS = """bought/buy/buys|saw/see/sees|lost/lose/loses|found/find/finds|sold/sell/sells|painted/paint/paints|broke/break/breaks|made/make/makes|wrote/write/writes|
read/read/reads|drew/draw/draws|cooked/cook/cooks|ate/eat/eats|visited/visit/visits|built/build/builds|repaired/repair/repairs|borrowed/borrow/borrows|
won/win/wins|brought/bring/brings|ordered/order/orders|cleaned/clean/cleans|opened/open/opens|moved/move/moves|stole/steal/steals|wanted/want/wants|needed/need/needs|
received/receive/receives|sent/send/sends|carried/carry/carries|chose/choose/chooses|planted/plant/plants|washed/wash/washes|invented/invent/invents|forgot/forget/forgets|
packed/pack/packs|baked/bake/bakes|caught/catch/catches|rented/rent/rents|watched/watch/watches|heard/hear/hears|dropped/drop/drops|hid/hide/hides|fixed/fix/fixes""".replace("\n", "").split("|")
VERBS = [v.split("/") for v in VERBS]
HABITS = """plays/play/tennis,the piano,the violin,chess,football,cards,the drums,golf,the flute|speaks/speak/L|teaches/teach/history,physics,music,English,maths,chemistry|
studies/study/law,medicine,biology,art,geology,Latin,economics|collects/collect/stamps,coins,shells,old maps,postcards,stones|sells/sell/cars,shoes,flowers,books,fish,carpets|
drinks/drink/D|grows/grow/tomatoes,roses,potatoes,beans,tulips,corn|drives/drive/a bus,a truck,a taxi,a tractor,a van|wears/wear/a hat,glasses,a red coat,a ring,boots,a scarf|
eats/eat/F|likes/like/F|loves/love/H|hates/hate/F|reads/read/novels,poems,newspapers,comics|repairs/repair/clocks,bikes,engines,roofs,radios""".replace("\n", "").split("|")
HABITS = [(a, b, c.split(",")) for a, b, c in (h.split("/") for h in HABITS)]
STARTS = "leaves/leave|starts/start|opens/open|closes/close|ends/end|arrives/arrive|begins/begin|finishes/finish|departs/depart".split("|")
EVENTS = """train|flight|bus|meeting|shop|concert|film|lesson|show|ferry|market|museum|library|exam|course|party|game|interview|bank|pool|conference|lecture|breakfast|dinner|
match|ceremony|workshop|boat|tour|shift|class|bakery|service|check-in""".replace("\n", "").split("|")
SIZES = "weighs/weigh/kilos/much|measures/measure/metres/much|costs/cost/euros/much|costs/cost/dollars/much|lasts/last/minutes/long|lasts/last/hours/long|takes/take/minutes/long".split("|")
LEVELS = ["level {n}", "floor {n}", "street {n}", "row {n}", "the corner", "the station", "the market", "the river", "the old bridge", "the north side", "deck {n}", "space {n}", "the school", "the church", "the harbour", "the hotel"]
MATERIALS = "wood gold silver glass stone paper iron wool leather plastic clay copper silk bronze marble".split()


def cap(s):
    return s[0].upper() + s[1:]


def an(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


class Subject:
    """Who or what a fact is about, as the user says it and as the answer says it."""

    def __init__(self, rng, words, kinds="person thing"):
        r = rng.random()
        self.me = False
        if "person" in kinds and ("thing" not in kinds or r < 0.5):
            r = rng.random()
            if r < 0.4:
                self.me, self.say, self.tell = True, "I", "you"
            elif r < 0.75:
                role = rng.choice(P.RELATIONS)
                self.say, self.tell = f"my {role}", f"your {role}"
                if rng.random() < 0.35:  # "my sister Elsa": the question names one or both
                    self.extra = P.person(rng)
                    self.long = f"my {role} {self.extra}"
                    if rng.random() < 0.3:
                        self.say = self.tell = self.extra
                    return
            else:
                self.say = self.tell = P.person(rng)
        else:
            noun = rng.choice(words if rng.random() < 0.5 else P.THINGS + EVENTS + ["car", "house", "boat", "office", "school", "flat", "garden", "shop"])
            det = rng.choice(["my", "my", "our", "the", "the"])
            self.say, self.tell = f"{det} {noun}", f"{'the' if det == 'the' else 'your'} {noun}"
        self.long = self.say


def made(key, say, ask, answer):
    return dict(key=key, say=cap(say), ask=[cap(a) for a in ask], answer=cap(answer), ack="Thank you, I will remember that.",
                none="You have not told me that.")


def event(rng, words):
    s = Subject(rng, words, "person")
    past, base, _ = rng.choice(VERBS)
    thing = rng.choice(P.THINGS + words[:600]) if rng.random() < 0.7 else None
    obj = rng.choice(["a", "a", "the", "two", "some", "a red", "an old", "a new", "a big"]) if thing else ""
    obj = (an(thing) if obj == "a" else f"{obj} {thing}s" if obj in ("two", "some") else f"{obj} {thing}") if thing else rng.choice(P.FOODS)
    when = rng.choice(["", "", " yesterday", " today", " last week", " on " + rng.choice(P.DAYS), " in " + rng.choice(P.CITIES), " this morning"])
    ask = [f"What did {s.say} {base}?", f"What did {s.say} {base}{when}?", f"What was it that {s.say} {past}?", f"Do you remember what {s.say} {past}?", f"Tell me what {s.say} {past}."]
    if not s.me:
        ask.append(f"Who {past} {obj}?")
        q = rng.random()
        if q < 0.3:
            return made(f"who {past} {obj}", f"{s.long} {past} {obj}{when}.", ask[-1:], f"{s.tell} {past} {obj}.")
        ask.pop()
    return made(f"{s.say} {base}", f"{s.long} {past} {obj}{when}.", ask, f"{s.tell} {past} {obj}.")


def habit(rng, words):
    s = Subject(rng, words, "person")
    third, base, things = rng.choice(HABITS)
    pool = {"L": P.LANGUAGES, "D": P.DRINKS, "F": P.FOODS, "H": P.HOBBIES + P.FOODS}.get(things[0], things)
    x = rng.choice(pool)
    do, verb = ("do", base) if s.me else ("does", third)
    ask = [f"What {do} {s.say} {base}?", f"Do you know what {s.say} {verb}?", f"Tell me what {s.say} {verb}."]
    if things[0] == "L":
        ask += [f"Which language {do} {s.say} speak?"] * 2
    if not s.me and rng.random() < 0.2:
        return made(f"who {verb} {x}", f"{s.long} {verb} {x}.", [f"Who {verb} {x}?"], f"{s.tell} {verb} {x}.")
    return made(f"{s.say} {base}", f"{s.long} {verb} {x}.", ask, f"{s.tell} {verb} {x}.")


def place(rng, words):
    r = rng.random()
    where = rng.choice(["in " + P.city(rng), "in the " + rng.choice(P.ROOMS), "on the " + rng.choice(P.SURFACES), "near " + rng.choice(LEVELS[4:]), "on " + rng.choice(LEVELS[:4]).format(n=rng.randint(1, 40)),
                        "behind the " + rng.choice(P.SURFACES + P.ROOMS), "at " + rng.choice(LEVELS[4:]), "under the " + rng.choice(P.SURFACES), "in " + rng.choice(P.COUNTRIES)]).format(n=rng.randint(1, 9))
    if r < 0.35:
        s = Subject(rng, words, "thing")
        return made(f"{s.say} place", f"{s.say} is {where}.", [f"Where is {s.say}?", f"Where's {s.say}?", f"Do you know where {s.say} is?", f"Tell me where {s.say} is.", f"Where can I find {s.say}?"], f"{s.tell} is {where}.")
    if r < 0.65:
        s = Subject(rng, words, "person")
        past, base = rng.choice(["parked/park", "put/put", "left/leave", "hid/hide", "found/find", "saw/see", "lost/lose", "bought/buy", "dropped/drop", "met/meet", "stored/store"]).split("/")
        det = rng.choice(["the", "my", "a"])
        thing = rng.choice(["car", "bike", "van", "bicycle"]) if past == "parked" else rng.choice(P.RELATIONS) if past == "met" else rng.choice(P.THINGS)
        det = "my" if past == "met" else det
        obj, tell = (an(thing), an(thing)) if det == "a" else (f"{det} {thing}", f"{'your' if det == 'my' else 'the'} {thing}")
        ask = [f"Where did {s.say} {base} {obj if det != 'a' else 'the ' + thing}?", f"Where did {s.say} {base} {obj}?", f"Do you remember where {s.say} {past} {obj}?"]
        if past in ("parked", "put", "left", "hid", "stored") and det != "a":
            ask += [f"Where is {obj}?"]
        if past == "parked":
            ask += [f"Where did {s.say} park?"] * 2
        return made(f"{s.say} {base} {thing}", f"{s.long} {past} {obj} {where}.", ask, f"{s.tell} {past} {tell} {where}.")
    s = Subject(rng, words, "person")
    third, base = rng.choice(["lives/live", "works/work", "studies/study", "sleeps/sleep", "stays/stay", "waits/wait", "teaches/teach", "trains/train", "grew up/grow up", "shops/shop"]).split("/")
    do, verb = ("do", base) if s.me else ("does", third)
    if third == "grew up":
        do, verb = "did", third
    return made("city" if s.me and base == "live" else f"{s.say} {base}", f"{s.long} {verb} {where}.", [f"Where {do} {s.say} {base}?", f"Do you know where {s.say} {verb}?", f"Tell me where {s.say} {verb}."], f"{s.tell} {verb} {where}.")


def timing(rng, words):
    det = rng.choice(["my", "the", "our", "the next"])
    noun = rng.choice(EVENTS)
    tell = {"my": "your", "our": "your"}.get(det, det) + " " + noun
    third, base = rng.choice(STARTS).split("/")
    at = rng.choice(["at " + P.clock(rng), "at " + P.clock(rng), "on " + rng.choice(P.DAYS), f"on {rng.choice(P.DAYS)} at {P.clock(rng)}", "in " + rng.choice(P.MONTHS)])
    gate = rng.choice(["", "", f" from gate {rng.choice('ABCD')}{rng.randint(1, 30)}", f" from platform {rng.randint(1, 20)}", f" in room {rng.randint(1, 400)}"])
    if gate and rng.random() < 0.4:
        word, value = gate.split()[1], gate.split()[2]
        return made(f"{noun} {word}", f"{det} {noun} {third} {at}{gate}.", [f"Which {word}?", f"What {word} does {det} {noun} {base} {gate.split()[0]}?", f"What is the {word} of {det} {noun}?", f"From which {word} does {det} {noun} {base}?" if "from" in gate else f"In which {word} is {det} {noun}?"], f"the {word} is {value}.")
    return made(f"{noun} time", f"{det} {noun} {third} {at}{gate}.", [f"When does {det} {noun} {base}?", f"What time does {det} {noun} {base}?", f"At what time does {det} {noun} {base}?", f"Do you remember when {det} {noun} {third}?", f"When is {det} {noun}?"], f"{tell} {third} {at}.")


def size(rng, words):
    r = rng.random()
    s = Subject(rng, words, "thing")
    if r < 0.4:
        third, base, unit, much = rng.choice(SIZES).split("/")
        n = rng.randint(2, 900)
        return made(f"{s.say} {base}", f"{s.say} {third} {n} {unit}.", [f"How {much} does {s.say} {base}?", f"How many {unit} does {s.say} {base}?", f"What does {s.say} {base}?" if much == "much" else f"How long does {s.say} {base}?"], f"{s.tell} {third} {n} {unit}.")
    if r < 0.6:
        n, adj, unit = rng.randint(2, 300), *rng.choice(["tall/metres", "old/years", "long/metres", "wide/metres", "deep/metres", "high/metres"]).split("/")
        return made(f"{s.say} {adj}", f"{s.say} is {n} {unit} {adj}.", [f"How {adj} is {s.say}?", f"Do you remember how {adj} {s.say} is?"], f"{s.tell} is {n} {unit} {adj}.")
    if r < 0.72:
        c = rng.choice(P.COLOURS)
        return made(f"{s.say} colour", f"{s.say} is {c}.", [f"What colour is {s.say}?", f"What color is {s.say}?", f"Which colour does {s.say} have?"], f"{s.tell} is {c}.")
    if r < 0.8:
        m = rng.choice(MATERIALS)
        return made(f"{s.say} made", f"{s.say} is made of {m}.", [f"What is {s.say} made of?", f"Of what is {s.say} made?"], f"{s.tell} is made of {m}.")
    if r < 0.9:
        v = P.invented(rng).capitalize() if rng.random() < 0.5 else rng.choice(words).capitalize()
        return made(f"{s.say} called", f"{s.say} is called {v}.", [f"What is {s.say} called?", f"What is the name of {s.say}?", f"How is {s.say} called?", f"What's the name of {s.say}?"], f"{s.tell} is called {v}.")
    who, n, things = Subject(rng, words, "person"), rng.choice("two three four five six seven eight nine ten".split() + [str(rng.randint(2, 60))]), rng.choice(P.THINGS + P.ANIMALS + ["brother", "sister", "friend", "student", "child's room"][:4]) + "s"
    have, do = ("have", "do") if who.me else ("has", "does")
    return made(f"{who.say} {things}", f"{who.long} {have} {n} {things}.", [f"How many {things} {do} {who.say} have?", f"What number of {things} {do} {who.say} have?"], f"{who.tell} {have} {n} {things}.")


def pets(rng, words):
    animal, a, b = rng.choice(P.ANIMALS[:15]), *rng.sample(P.PET_NAMES + P.NAMES, 2)
    if rng.random() < 0.5:
        age = rng.choice("two three four five six seven eight nine ten".split() + [str(rng.randint(1, 20))])
        say = f"my {animal} {a} is {age} years old."
        if rng.random() < 0.6:
            return made("pet", say, [f"What is my {animal} called?", f"What is my {animal}'s name?", f"What's the name of my {animal}?", f"What is the name of my {animal}?"], f"your {animal} is called {a}.")
        return made("pet", say, [f"How old is my {animal}?", f"How old is {a}?"], f"your {animal} is {age} years old.")
    kind = rng.choice(P.ANIMALS[:15] + ["brother", "sister", "son", "daughter", "friend", "cousin"])
    plural = kind + "s" if kind not in ("goldfish", "sheep") else kind
    say = rng.choice([f"I have two {plural}, {a} and {b}.", f"I have two {plural} called {a} and {b}.", f"My two {plural} are called {a} and {b}.", f"My {plural} are {a} and {b}."])
    if rng.random() < 0.4 and "I have" in say:
        return made("pet", say, [f"How many {plural} do I have?"], f"you have two {plural}.")
    return made("pet", say, [f"What are my {plural} called?", f"What are the names of my {plural}?", f"Who are my {plural}?", f"What are my {plural}' names?"], f"your {plural} are called {a} and {b}.")


def word_list(rng, words):
    r = rng.random()
    if r < 0.5:
        w = rng.choice(words) if rng.random() < 0.7 else P.digits(rng, 4)
        what = "number" if w[0].isdigit() else "word"
        return made("the word", rng.choice([f"Remember the {what}: {w}.", f"Remember the {what} {w}.", f"Remember this {what}: {w}.", f"The {what} to remember is {w}.", f"Keep this {what} in mind: {w}."]),
                    [f"Which {what} should you remember?", f"What {what} did I ask you to remember?", f"What was the {what}?", f"Which {what} did I give you?", f"What is the {what}?", f"What should you remember?"], f"the {what} is {w}.")
    things = rng.sample(P.FOODS + P.THINGS, rng.randint(2, 4))
    text = ", ".join(things[:-1]) + " and " + things[-1]
    name = rng.choice(["shopping list", "list", "packing list", "to-do list", "wish list", "order"])
    return made(name, rng.choice([f"My {name}: {text}.", f"On my {name} are {text}.", f"My {name} is {text}."]), [f"What is on my {name}?", f"What's on my {name}?", f"Read me my {name}.", f"What did I put on my {name}?", f"What is my {name}?"], f"on your {name}: {text}.")


def draw(rng, words):
    r = rng.random()
    for share, make in ((0.20, event), (0.34, habit), (0.58, place), (0.70, timing), (0.85, size), (0.93, pets), (1.1, word_list)):
        if r < share:
            return make(rng, words)


def introduction(rng, facts):
    """Several facts about the user in one sentence: "I am Greta, 41, and I live in Aarhus." """
    f = {k: facts.fact_about_user(rng, k) for k in ("name", "age", "city", "job")}
    value = {k: f[k]["answer"].rstrip(".").split(" ") for k in f}
    name, age = " ".join(value["name"][3:]), value["age"][2]
    city, job = " ".join(value["city"][3:]), " ".join(value["job"][2:])
    pick = rng.choice([("I am {n}, {a}, and I live in {c}.", "name age city"), ("I'm {n}, {j} from {c}.", "name job from"), ("I am {n} and I am {a} years old.", "name age"),
                       ("My name is {n}, I am {a} and I live in {c}.", "name age city"), ("I am {j} called {n}.", "name job"), ("{n} here, {a} years old, living in {c}.", "name age city"),
                       ("I'm {n} from {c}.", "name from"), ("My name is {n} and I live in {c}.", "name city"), ("I'm {n} and I work as {j}.", "name job"), ("I am {j} in {c}.", "job city"),
                       ("I am {a} years old and live in {c}.", "age city"), ("Hello, {n} speaking. I am {j}.", "name job"), ("I am {n}, I work as {j} and I live in {c}.", "name job city"),
                       ("hey my name is {n} and i live in {c}", "name city"), ("i'm {n}, {a}, {j}", "name age job")])
    say = pick[0].format(n=name, a=age, c=city, j=job)
    f["from"] = facts.fact_about_user(rng, "from") | {"answer": f"You are from {city}."}
    return [dict(f[k], say=say) for k in pick[1].split()]
