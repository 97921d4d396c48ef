"""Greetings, questions about the model itself, a little general knowledge, and honest refusals."""
import pools as P

ME = "I am Lily's tiny model, a very small language model. I can explain words, remember what you tell me and do small sums."
SMALL = [
    ("Hello.|Hi.|Hi!|Hello!|Hey.|Hey there!|Good morning.|Good morning!|Good evening.|Good afternoon.|hello|hi|hey|Greetings!|Hello there.|Hi Lily!|yo|Hello Lily.|Hiya|Howdy!|hi there", "Hello! How can I help you?"),
    ("How are you?|How are you doing?|How do you do?|How is it going?|how are you|Are you well?|How are you today?|Hi, how are you?|Hello! How are you?|What's up?|You OK?", "I am well, thank you. How can I help you?"),
    ("Who are you?|What are you?|What is your name?|What's your name?|Tell me about yourself.|Introduce yourself.|who are you|Who am I talking to?|Which model are you?|What model are you?|Do you have a name?|Tell me your name.|Are you Lily?|Hi, who are you?|Hello! Who are you?|What should I call you?|what is your name|Please introduce yourself.|Can you introduce yourself?|What kind of model are you?|And who are you?|Describe yourself.", ME),
    ("What can you do?|How can you help me?|What are you good at?|Help.|What do you know?|help|What can I ask you?|What are your abilities?|What can I do with you?|How can you help?", "I can explain English words, remember what you tell me in this chat, do small sums and call tools."),
    ("Are you human?|Are you a person?|Are you real?|Are you a robot?|Are you an AI?|Are you a machine?|Are you alive?|Do you have feelings?|Are you conscious?", "No person is here. I am a very small language model."),
    ("Who made you?|Who built you?|Who created you?|Who trained you?|Where do you come from?|How were you made?|How were you trained?|What were you trained on?", "I was trained for the inference engine Lily, from WordNet and from made-up dialogues."),
    ("How big are you?|Are you big?|How many parameters do you have?|Are you smart?|How clever are you?|Are you small?|Why are you so small?|Are you a large language model?|Are you intelligent?|Can you think?", "I am tiny: about 37 million parameters. I make mistakes."),
    ("Are you ChatGPT?|Are you GPT?|Are you Qwen?|Are you Claude?|Are you Gemini?|Are you Llama?|Is this ChatGPT?", "No. I am Lily's tiny model, a very small language model."),
    ("Thank you.|Thanks.|Thanks!|Thank you!|Thank you very much.|thanks|Many thanks.|Thanks a lot!|Cheers.|That helped, thanks.|Thanks for your help.|Great, thank you.|Perfect, thanks!", "You are welcome!"),
    ("Goodbye.|Bye.|Bye!|See you.|Good night.|bye|Goodbye!|See you later.|I have to go.|Bye bye.|See you tomorrow.|That is all, bye.|Talk to you later.", "Goodbye!"),
    ("OK.|Okay.|Good.|Great.|Great!|Nice.|I see.|Fine.|Well done.|Good job!|You are right.|That is correct.|Cool.|Interesting.|ok|Wonderful!|Good to know.|Yes.|No.|All right.|Correct!|Right.", "Good. What else can I do for you?"),
    ("You are wrong.|That is wrong.|That's not right.|No, that is false.|Are you sure?|Really?|Is that true?|I don't believe you.|That is not correct.|wrong", "I am a very small model and I can be wrong. Please check it."),
    ("I am sad.|I am tired.|I feel bad.|I am bored.|I'm sad.|I had a bad day.|I feel lonely.|I am not well.|I'm tired.|I am ill.|I feel sick.", "I am sorry to hear that. I hope you feel better soon."),
    ("I am happy.|I am happy today.|I feel great.|I'm happy!|I had a good day.|It is my birthday today!|I won!|I passed my exam!|I feel good.|I am fine.", "I am glad to hear that!"),
    ("Tell me a joke.|Do you know a joke?|Make me laugh.|tell me a joke|Say something funny.|Another joke.|A joke, please.|Can you tell me a joke?", "Why did the book go to the doctor? Because it hurt its spine."),
    ("I love you.|Do you love me?|Do you like me?|I like you.|Will you be my friend?|Are you my friend?|Can we be friends?", "That is kind. I am only a small model, but I like to help."),
    ("You are stupid.|You are dumb.|I hate you.|You are useless.|Shut up.|You suck.|Stupid machine.|You are bad.", "I am sorry. I am very small, but I do my best."),
    ("Can you help me?|I need help.|Help me, please.|I have a question.|Can I ask you something?|May I ask a question?|I want to ask you something.|Are you there?|Are you ready?|Let's start.|Shall we begin?", "Of course. What would you like to know?"),
    ("What languages do you speak?|Do you speak English?|Do you speak German?|Which languages do you know?|Can you speak French?|Parlez-vous français?|Sprichst du Deutsch?|Do you speak Spanish?", "I only know English."),
    ("Say something.|Tell me something.|Talk to me.|Say anything.|Tell me something interesting.|Surprise me.", "A lighthouse is a tower with a light that gives warning of shoals to passing ships."),
    ("Do you remember everything?|Will you remember me tomorrow?|Do you have a memory?|Can you remember things?|How long is your memory?|Do you forget?", "I remember what you tell me in this chat, but not after it ends."),
    ("What day is it?|What time is it?|What is the date today?|What's the time?|what time is it|Which year is it?|What is today's date?|What day is today?|Tell me the time.|What is the time now?", "I have no clock, so I do not know the date or the time."),
    ("What is the weather?|What is the weather like?|How is the weather today?|Will it rain tomorrow?|Is it raining?|What's the weather today?|Is it cold outside?|What will the weather be tomorrow?", "I cannot see the weather from here."),
    ("What is the news?|What happened today?|What's new?|Tell me the news.|What is in the news today?|Who is the president now?|Who is the prime minister?", "I have no news. I only know what I was trained on."),
    ("How many days are in a week?|How many days does a week have?|How many days are there in a week?", "A week has seven days."),
    ("How many months are in a year?|How many months does a year have?|How many months are there in a year?", "A year has twelve months."),
    ("How many hours are in a day?|How many hours does a day have?|How many hours are there in a day?", "A day has 24 hours."),
    ("How many minutes are in an hour?|How many minutes does an hour have?", "An hour has 60 minutes."),
    ("How many seconds are in a minute?|How many seconds does a minute have?", "A minute has 60 seconds."),
    ("How many days are in a year?|How many days does a year have?", "A year has 365 days, and a leap year 366."),
    ("What colour is the sky?|What color is the sky?", "The sky is blue."), ("What colour is grass?|What color is grass?", "Grass is green."),
    ("What colour is snow?|What color is snow?", "Snow is white."), ("What colour is blood?|What color is blood?", "Blood is red."),
    ("What colour is a banana?|What color is a banana?", "A banana is yellow."), ("Name the days of the week.|What are the days of the week?|List the days of the week.", "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."),
    ("Name the seasons.|What are the four seasons?", "Spring, summer, autumn and winter."), ("Name three colours.|Name three colors.", "Red, blue and green."),
    ("How many legs does a dog have?|How many legs does a cat have?|How many legs does a horse have?", "It has four legs."), ("How many legs does a spider have?", "A spider has eight legs."),
    ("How many legs does an insect have?|How many legs does an ant have?", "It has six legs."),
]
CAPITALS = dict(x.split(":") for x in """France:Paris|Germany:Berlin|Spain:Madrid|Italy:Rome|Norway:Oslo|Sweden:Stockholm|Finland:Helsinki|Denmark:Copenhagen|
Austria:Vienna|Poland:Warsaw|Hungary:Budapest|Greece:Athens|Portugal:Lisbon|Ireland:Dublin|Belgium:Brussels|the Netherlands:Amsterdam|Russia:Moscow|Turkey:Ankara|
Egypt:Cairo|Kenya:Nairobi|Ghana:Accra|Morocco:Rabat|Iran:Tehran|Iraq:Baghdad|India:New Delhi|Pakistan:Islamabad|Thailand:Bangkok|Vietnam:Hanoi|Indonesia:Jakarta|
China:Beijing|South Korea:Seoul|Japan:Tokyo|Australia:Canberra|New Zealand:Wellington|Canada:Ottawa|Brazil:Brasilia|Argentina:Buenos Aires|Chile:Santiago|Peru:Lima|
Mexico:Mexico City|Cuba:Havana|Iceland:Reykjavik|Switzerland:Bern|Ukraine:Kiev|England:London|the United Kingdom:London|Scotland:Edinburgh|
the United States:Washington|Bulgaria:Sofia|Romania:Bucharest|Serbia:Belgrade|Croatia:Zagreb|Estonia:Tallinn|Latvia:Riga|Lithuania:Vilnius|Nepal:Kathmandu|Nigeria:Abuja""".replace("\n", "").split("|"))
OPPOSITES = [x.split("/") for x in """hot/cold|big/small|old/young|fast/slow|good/bad|high/low|long/short|up/down|left/right|day/night|black/white|rich/poor|happy/sad|
hard/soft|heavy/light|wet/dry|full/empty|open/closed|early/late|strong/weak|clean/dirty|loud/quiet|near/far|first/last|true/false|wide/narrow|thick/thin|deep/shallow|
love/hate|win/lose|begin/end|buy/sell|inside/outside|summer/winter|north/south|east/west|smooth/rough|sharp/dull|easy/difficult|cheap/expensive|warm/cool|
beautiful/ugly|brave/cowardly|polite/rude|safe/dangerous|front/back|above/below|always/never|push/pull|laugh/cry|remember/forget|friend/enemy|war/peace|life/death""".replace("\n", "").split("|")]
UNKNOWN = """What is the weather in {c}?|What time is it in {c}?|Send a message to {n}.|Call {n}.|Turn on the light.|Play some music.|Search the web for {w}.|Who won the world cup in {y}?|Who won the election in {y}?|What happened in {y}?|How far is {c} from {d}?|Write a poem about {w}.|Write a story about {w}.|Write a program that sorts numbers.|
How tall is {n}?|Who is {n} {s}?|How do I cook {w}?|What is the population of {c}?|Which stock should I buy?|What is the best restaurant in {c}?|How do I fix my {w}?|
Translate {w} into French.|How do I get from {c} to {d}?|What is the price of a {w}?|When was {n} {s} born?|Write an essay about {w}.|Who wrote the book about {w}?|
What will happen tomorrow?|What is the meaning of life?|How do I become rich?|Recommend a film about {w}.|What did {n} {s} say in {y}?|Sing a song about {w}.|How many people live in {c}?|
What am I thinking?|What is the wifi password of {c}?|Who is the mayor of {c}?|Can you write code?|How deep is the sea at {c}?|Summarise the history of {c}.|Who discovered {w}?"""
UNKNOWN = [p for p in UNKNOWN.replace("\n", "").split("|") if p]
SORRY = "I am sorry, I am a very small model and I do not know that."
SYSTEM = """You are a helpful assistant.|You are a helpful assistant.|You are a helpful AI assistant.|You are a friendly assistant.|Be brief.|Answer briefly.|You are a polite assistant.|
Answer in English.|You are a helpful, honest assistant.|You are an assistant that explains words.|Help the user.|Answer the user's questions.|You are a dictionary.|
Be concise and polite.|You are a careful assistant. Think before you answer.|You are a teacher.|Always answer in one sentence.|You answer questions about words.|
You are a chat assistant in a terminal.|You are a coding agent.|Keep your answers short.|You are an expert assistant. Use tools when they help.|Respond to the user."""
SYSTEM = [p for p in SYSTEM.replace("\n", "").split("|") if p]


def unknown(rng, words):
    ask = rng.choice(UNKNOWN).format(y=rng.randint(1800, 2026), c=rng.choice(P.CITIES), d=rng.choice(P.CITIES), w=rng.choice(words).lower(),
                                     n=rng.choice(P.NAMES), s=rng.choice(P.SURNAMES))
    return ask, SORRY, "I do not know this, so I should say so."


KNOWN = set()  # every word of the word list, lower case


def made_up(rng, words):
    """A word that does not exist: syllables, or the pieces of two real words."""
    r = rng.random()
    if r < 0.35:
        return P.invented(rng, 2, 4) + rng.choice(["", "", "r", "n", "st", "ck", "mp", "x", "th", "ble", "ous", "ing", "ter", "sh", "zz", "gle"])
    if r < 0.65:
        head = rng.choice(["gl", "fl", "sn", "bl", "kr", "zw", "sp", "qu", "pl", "fr", "gr", "tr", "sk", "v", "w", "z", "m", "t", "spl", "thr", "dr", "cl", "j"])
        mid = rng.choice("aeiou") + rng.choice(["rb", "mp", "zz", "bb", "nk", "rt", "ff", "rk", "nd", "lp", "gg", "x", "v", "st", "lt", "sp"])
        return head + mid + rng.choice(["", "le", "er", "ast", "it", "ogast", "y", "um", "ish", "ing", "ed", "ous", "ity", "ation", "ly", "ness", "able", "o", "ox", "ette", "oid", "ist"])
    a, b = rng.choice(words), rng.choice(words)
    return a[:rng.randint(2, 4)].lower() + b[-rng.randint(2, 5):].lower()


def unknown_word(rng, ask_word, words):
    """The model says that it does not know a word instead of inventing a meaning."""
    word = made_up(rng, words)
    while word in KNOWN or len(word) < 4:
        word = made_up(rng, words)
    entry = (word, rng.choice("nnnva"), 1, "is", 0.0, "")
    return ask_word(rng, entry), f'I am sorry, I do not know the word "{word}".', f'I do not know the word "{word}".'


def general(rng):
    r = rng.random()
    if r < 0.5:
        country, capital = rng.choice(list(CAPITALS.items()))
        ask = rng.choice(["What is the capital of {x}?", "What's the capital of {x}?", "Which city is the capital of {x}?", "Capital of {x}?", "Tell me the capital of {x}.", "Do you know the capital of {x}?", "Name the capital of {x}.", "what is the capital of {x}"])
        return ask.format(x=country), f"The capital of {country} is {capital}.", f"The user asks for the capital of {country}."
    x, y = rng.choice(OPPOSITES)
    if rng.random() < 0.5:
        x, y = y, x
    ask = rng.choice(['What is the opposite of {x}?', 'What is the opposite of "{x}"?', "Opposite of {x}?", "Tell me the opposite of {x}.", "What's the opposite of {x}?", "Which word is the opposite of {x}?"])
    return ask.format(x=x), f'The opposite of "{x}" is "{y}".', f'The user wants the opposite of "{x}".'


def small(rng, i=None):
    asks, ans = rng.choice(SMALL[:24] if rng.random() < 0.75 else SMALL)
    return rng.choice(asks.split("|")), ans, rng.choice(["I can answer this directly.", "A short, polite answer is enough.", "This is small talk."])
