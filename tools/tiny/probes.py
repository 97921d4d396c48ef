"""Test prompts: generated ones with held-out seeds and phrasings, and hand-written ones.

A probe is (category, messages, tools, thinking, preserve_thinking, expected): expected is a text that the
answer must equal, or a list of patterns that must all be found in it, or a list of calls.
"""
import random

import arith
import chat
import facts
import phrases
import toolcalls
from dialogues import Writer

SEED = 987654


def user(*texts):
    """Alternating user and assistant messages, a user message last."""
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": t} for i, t in enumerate(texts)]


def glosses(entries, count=500):
    """The same sample of words twice: asked as in training and with phrasings that were held back."""
    rng = random.Random(SEED)
    for entry in rng.sample(entries, count):
        thinking = rng.random() < 0.3
        yield "gloss, known phrasings", user(phrases.ask(rng, entry)), None, thinking, False, phrases.answer(entry)
        yield "gloss, held-out phrasings", user(phrases.ask(rng, entry, held_out=True)), None, thinking, False, phrases.answer(entry)


def common(entries, count=300):
    """Everyday nouns in the plainest form."""
    rng = random.Random(SEED + 1)
    plain = [e for e in entries if e[1] == "n" and e[2] and e[3] == "is" and e[4] > 50]
    for e in rng.sample(plain, min(count, len(plain))):
        yield "gloss, everyday nouns", user(f"What is {phrases.article(e[0])}?"), None, False, False, phrases.answer(e)


def recall(writer, count=300):
    """Generated chats that end in a question about a fact."""
    rng = random.Random(SEED + 2)
    made = 0
    while made < count:
        chat_messages = writer.fact_chat()
        ends = [i for i, m in enumerate(chat_messages) if m["role"] == "assistant" and i > 3
                and m.get("reasoning_content", "").startswith(("The user told", "Earlier the user", "The user has not"))]
        if ends:
            end = rng.choice(ends)
            known = "has not" not in chat_messages[end]["reasoning_content"]
            thinking = rng.random() < 0.4
            history = [m if thinking else {k: v for k, v in m.items() if k != "reasoning_content"} for m in chat_messages[:end]]
            kind = "recall of told facts" if known else "facts never told"
            yield kind, history, None, thinking, rng.random() < 0.5, chat_messages[end]["content"]
            made += 1


def sums(count=200):
    rng = random.Random(SEED + 3)
    for i in range(count):
        ask, answer, _ = arith.turn(rng)
        yield ("arithmetic, thinking" if i % 2 else "arithmetic"), user(ask), None, bool(i % 2), False, answer


def tools(writer, count=200):
    """Calls, and answers from results, with tools and arguments drawn afresh."""
    rng = writer.rng
    for i in range(count):
        box = toolcalls.toolbox(rng, writer.words)
        turn = toolcalls.tool_turn(rng, box[0])
        at = next(j for j, m in enumerate(turn) if m.get("tool_calls"))
        thinking = i % 3 == 0
        turn = [m if thinking else {k: v for k, v in m.items() if k != "reasoning_content"} for m in turn]
        schemas = [t.schema for t in box]
        rng.shuffle(schemas)
        calls = [c["function"] for c in turn[at]["tool_calls"]]
        kind = "two parallel tool calls" if len(calls) > 1 else "tool call"
        yield kind, turn[:at], schemas, thinking, False, calls
        yield "tool result used", turn[:-1], schemas, thinking, False, turn[-1]["content"]


def others(writer, count=100):
    rng = random.Random(SEED + 4)
    for i in range(count):
        ask, answer, _ = chat.unknown_word(rng, phrases.ask, writer.words)
        yield "invented words", user(ask), None, i % 3 == 0, False, answer
        box = [t.schema for t in toolcalls.toolbox(rng, writer.words)]
        gloss = writer.gloss()
        yield "no call when none is needed", gloss[:1], box, i % 3 == 0, False, gloss[1]["content"]


def by_hand():
    """Written by hand, none of them produced by the generators."""
    told = [
        (["My name is Ada.", "Nice to meet you, Ada!", "What is my name?"], ["Ada"]),
        (["hey my name is Bartholomew and i live in Tromso", "Nice to meet you, Bartholomew!", "what is a bridge?",
          "A bridge is a structure.", "whats my name"], ["Bartholomew"]),
        (["I am Greta, 41, and I live in Aarhus.", "Nice to meet you, Greta!", "How old am I?"], ["41"]),
        (["My dog Rufus is three years old.", "Thank you, I will remember that.", "What is my dog called?"], ["Rufus"]),
        (["I parked the car on level 5.", "OK, I will remember that.", "Where did I park?"], ["5"]),
        (["Our office is in Utrecht.", "Thank you, I will remember that.", "Where is our office?"], ["Utrecht"]),
        (["My best friend is called Ludmila.", "Thank you, I will remember that.", "What is 3 + 4?", "3 + 4 = 7.",
          "Who is my best friend?"], ["Ludmila"]),
        (["I like green most of all colours.", "Thank you, I will remember that.", "What's my favourite colour?"], ["green"]),
        (["The secret number is 7319.", "Thank you, I will remember that.", "Hello.", "Hello! How can I help you?",
          "Can you repeat the secret number?"], ["7319"]),
        (["My sister Elsa lives in Turin and my brother Jon lives in Cork.", "Thank you, I will remember that.",
          "Where does my brother live?"], ["Cork"]),
        (["I work as a blacksmith.", "Thank you, I will remember that.", "So what do I do for a living?"], ["blacksmith"]),
        (["My flight leaves at 14:35 from gate B7.", "OK, I will remember that.", "What time does my flight leave?"], ["14:35"]),
        (["I have two cats, Mina and Tobi.", "Thank you, I will remember that.", "How many cats do I have?"], ["two|2"]),
        (["My favorite book is Dracula.", "Thank you, I will remember that.", "What is a vampire?", "A vampire is a corpse.",
          "And what is my favorite book?"], ["Dracula"]),
        (["Remember the word: pineapple.", "Thank you, I will remember that.", "Which word should you remember?"], ["pineapple"]),
        (["My name is Olaf. I am from Iceland.", "Nice to meet you, Olaf!", "What is a fjord?", "A fjord is an inlet.",
          "Where do I come from?"], ["Iceland"]),
    ]
    for texts, want in told:
        for thinking in (False, True):
            yield "recall, by hand, used while developing", user(*texts), None, thinking, False, want
    for ask, want in [("2+2", "4"), ("What is 17 + 25?", "42"), ("what is 9 times 8", "72"), ("100 - 37 = ?", "63"), ("How much is 345 + 278?", "623"),
                      ("12 * 12", "144"), ("What is 500 minus 123?", "377"), ("What is seven plus eight?", "15"), ("Can you add 64 and 29?", "93"),
                      ("What is 56 divided by 7?", "8")]:
        for thinking in (False, True):
            yield "arithmetic, by hand", user(ask), None, thinking, False, [r"\b" + want + r"\b"]
    for ask, want in [("Hello!", "Hello|Hi"), ("Who are you?", "tiny"), ("what's your name?", "Lily"), ("Thanks a lot", "welcome"), ("How are you doing today?", "well|fine"),
                      ("What does the word splorkish mean?", "do not know|don't know"), ("Who won the football match last night?", "do not know|don't know|no news|not"), ("bye!", "bye")]:
        yield "small talk, by hand", user(ask), None, False, False, [want]
    persona = [{"role": "system", "content": "You are Marvin, a gloomy robot."}, {"role": "user", "content": "Who are you?"}]
    yield "small talk, by hand", persona, None, False, False, ["Marvin"]
    yield from tools_by_hand()
    yield from fresh()


def fresh():
    """Written after the last change of the generators, and not used to change them."""
    ok = "Thank you, I will remember that."
    told = [
        (["Hi there, Leopold is my name.", "Nice to meet you, Leopold!", "Could you tell me what my name is?"], ["Leopold"]),
        (["I turned 58 last Sunday.", ok, "How old am I now?"], ["58"]),
        (["We live in a small house in Bruges.", ok, "In what city do we live?"], ["Bruges"]),
        (["Our cat Minka sleeps all day.", ok, "What's our cat called?"], ["Minka"]),
        (["The spare key is under the flower pot.", ok, "What is a flower?", "A flower is a plant.", "Where is the spare key?"], ["flower pot"]),
        (["My dentist is Dr. Novak.", ok, "Who is my dentist?"], ["Novak"]),
        (["The meeting was moved to Thursday.", ok, "On which day is the meeting?"], ["Thursday"]),
        (["My locker number is 208.", ok, "What is 8 * 7?", "8 × 7 = 56.", "Hello", "Hello! How can I help you?", "What is my locker number?"], ["208"]),
        (["My son Emil plays the cello.", ok, "What instrument does my son play?"], ["cello"]),
        (["I really love the color teal.", ok, "Which color do I love?"], ["teal"]),
        (["My wife is a surgeon.", ok, "What does my wife do?"], ["surgeon"]),
        (["Anton has a boat and Berta has a plane.", ok, "What does Berta have?"], ["plane"]),
        (["I bought a violin in Vienna.", ok, "What did I buy?"], ["violin"]),
        (["The train to Malmo leaves at 6:20.", ok, "When does the train leave?"], ["6:20"]),
        (["My name is Yusra and my favourite fruit is mango.", "Nice to meet you, Yusra!", "What is my favourite fruit?", "Your favourite fruit is mango.", "And my name?"], ["Yusra"]),
        (["please remember that the garage code is 5530", ok, "thanks", "You are welcome!", "what is the garage code"], ["5530"]),
        (["My favourite singer is Umm Kulthum.", ok, "Who is my favourite singer?"], ["Kulthum"]),
        (["I was born in 1987.", ok, "In which year was I born?"], ["1987"]),
        (["My neighbour is called Ingeborg.", ok, "What is a neighbour?", "A neighbour is a person.", "What's the name of my neighbour?"], ["Ingeborg"]),
        (["The red box holds the tea and the blue box holds the sugar.", ok, "What does the blue box hold?"], ["sugar"]),
    ]
    for texts, want in told:
        for thinking in (False, True):
            yield "recall, by hand, fresh", user(*texts), None, thinking, False, want
    rate = toolcalls.schema("currency_rate", "Current exchange rate of two currencies", [("base", "string", "Currency code"), ("target", "string", "Currency code")], ["base", "target"])
    movie = toolcalls.schema("find_movies", "Find films by director", [("director", "string", "Name of the director"), ("year", "integer", "Year")], ["director"])
    robot = toolcalls.schema("move_arm", "Moves the robot arm by an angle", [("degrees", "number", "Angle in degrees")], ["degrees"])
    sun = toolcalls.schema("sunrise", "Time of sunrise at a place", [("place", "string", "The place")], ["place"])
    book = toolcalls.schema("reserve_table", "Reserve a table in a restaurant", [("restaurant", "string", "Name"), ("people", "integer", "How many guests")], ["restaurant", "people"])
    cases = [("When is sunrise in Lima?", [sun, movie], [("sunrise", {"place": "Lima"})]), ("Move the arm by 45 degrees.", [robot, sun], [("move_arm", {"degrees": 45})]),
             ("Find movies by Agnes Varda.", [movie], [("find_movies", {"director": "Agnes Varda"})]), ("What is the exchange rate from EUR to USD?", [rate, book], [("currency_rate", {"base": "EUR", "target": "USD"})]),
             ("Reserve a table at Luigi for 4 people.", [book, robot, sun], [("reserve_table", {"restaurant": "Luigi", "people": 4})]), ("sunrise in Perth and Hobart?", [sun], [("sunrise", {"place": "Perth"}), ("sunrise", {"place": "Hobart"})])]
    for ask, box, calls in cases:
        for thinking in (False, True):
            yield "tool call, by hand, fresh", user(ask), box, thinking, False, [{"name": n, "arguments": a} for n, a in calls]


def tools_by_hand():
    weather = toolcalls.schema("get_weather", "Get the current weather in a given city", [("city", "string", "Name of the city")], ["city"])
    stock = toolcalls.schema("lookup_stock", "Look up how many pieces of an article are in stock", [("article", "string", "Name of the article"), ("warehouse", "string", "Name of the warehouse")], ["article"])
    mail = toolcalls.schema("send_email", "Send an e-mail", [("to", "string", "Recipient"), ("subject", "string", "Subject"), ("body", "string", "Text")], ["to", "body"])
    kill = toolcalls.schema("stop_job", "Stop a running job by its number", [("job_id", "integer", "Number of the job")], ["job_id"])
    cases = [
        ("What is the weather in Trondheim?", [weather], [("get_weather", {"city": "Trondheim"})]),
        ("Hi! Could you check the weather in Lagos for me?", [weather, mail], [("get_weather", {"city": "Lagos"})]),
        ("weather for Quito please", [stock, weather, kill], [("get_weather", {"city": "Quito"})]),
        ("How many umbrellas are in stock?", [stock, weather], [("lookup_stock", {"article": "umbrellas"})]),
        ("Stop job 4411.", [kill, weather], [("stop_job", {"job_id": 4411})]),
        ("What's the weather in Oslo and in Bergen?", [weather], [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"})]),
        ("Tell me the weather in Paris and London.", [weather, kill], [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "London"})]),
    ]
    for ask, box, calls in cases:
        for thinking in (False, True):
            yield "tool call, by hand, used while developing", user(ask), box, thinking, False, [{"name": n, "arguments": a} for n, a in calls]
    done = user("What is the weather in Trondheim?") + [
        {"role": "assistant", "content": "", "tool_calls": [toolcalls.call("get_weather", {"city": "Trondheim"})]},
        {"role": "tool", "content": '{"temp_c": -7, "sky": "snow"}'}]
    for thinking in (False, True):
        yield "tool result, by hand", done, [weather], thinking, False, ["-7"]
    for ask, want in [("What is a spoon?", "."), ("Hello!", "Hello|Hi"), ("What is 5 + 6?", "11")]:
        yield "no call, by hand", user(ask), [weather, mail], False, False, [want]


def all_probes(entries, small=False):
    n = 20 if small else 1
    writer = Writer(entries, SEED)
    out = list(glosses(entries, 500 // n)) + list(common(entries, 300 // n)) + list(recall(writer, 300 // n)) + list(sums(200 // n))
    out += list(tools(writer, 120 // n)) + list(others(writer, 100 // n)) + list(by_hand())
    return out


if __name__ == "__main__":
    print(len(list(by_hand())), len(facts.SPEC))
