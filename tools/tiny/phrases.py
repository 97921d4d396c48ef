"""Ways to ask for a word's meaning. HELD_OUT ones are never trained on: score.py asks with them.

In a phrase, {a} is the word with its article, {s} its plural, {w} the bare word, {q} the word in quotes.
"""
import random

import wording

NOUN = """What is {a}?|What is {a}?|What is {a}?|What's {a}?|What are {s}?|What is the meaning of {a}?|Tell me what {a} is.
Can you tell me what {a} is?|Could you tell me what {a} is?|Please tell me what {a} is.|Do you know what {a} is?
I want to know what {a} is.|I would like to know what {a} is.|Explain what {a} is.|Can you explain what {a} is?
Describe {a}.|Can you describe {a}?|Define {a}.|Tell me about {s}.|What does {a} mean?|So what is {a}?|What kind of thing is {a}?
I don't know what {a} is.|I wonder what {a} is.|Who or what is {a}?|What do you call {a}, what is it?|what is {a} exactly
My child asks what {a} is.|And what is {a}?|What about {a}?|And {a}?|What would you say {a} is?|Say what {a} is.
What are {s}, please?|Explain {s}.|Teach me what {a} is.|What on earth is {a}?|What sort of thing is {a}?|Hm, what is {a}?
I need to know what {a} is.|Remind me what {a} is.|Any idea what {a} is?|Give me a definition of {a}.|How is {a} defined?
I forgot what {a} is.|Explain to me what {a} is.|What do people mean by {a}?|I just saw {a}. What is that?|Give the meaning of {a}."""
VERB = """What does it mean to {w}?|What does "to {w}" mean?|What does to {w} mean?|What is the meaning of to {w}?|Define to {w}.
Define the verb {w}.|What does the verb {w} mean?|Explain what it means to {w}.|Tell me what it means to {w}.
What is it to {w}?|Can you explain the verb {q}?|to {w} - meaning?|What do people do when they {w}?|Define "to {w}".
What do you mean by to {w}?|Please explain what to {w} means.|Can you tell me what it means to {w}?|I {w}. What does it mean?"""
OTHER = """What does it mean to be {w}?|What does it mean if something is {w}?|If something is {w}, what does it mean?
What does {w} mean when you describe something?|Explain what {w} means.|What is meant by being {w}?"""
ANY = """What does {w} mean?|What does {w} mean?|What does {q} mean?|What does {q} mean?|What does the word {w} mean?|What does the word {q} mean?
Define {w}.|Define {w}.|Define {q}.|Define the word {w}.|Define the word {q}.|What is {w}?|What is {q}?|What's {w}?
Explain {w}.|Explain {q}.|Can you explain {w}?|Can you explain the word {w}?|Can you explain the word {q}?|Could you explain {q}?
Please explain the word {w}.|Please define {w}.|Please define {q} for me.|Can you define {w}?|Could you define {w}?|Could you define {q}?
{w} - meaning?|{w} meaning|{w}?|{w}|{w}: meaning?|Meaning of {w}?|meaning of {q}|Definition of {w}?|Definition of {q}|definition: {w}
What is the meaning of {w}?|What is the meaning of {q}?|What is the meaning of the word {q}?|What is the definition of {w}?
What is the definition of {q}?|What's the definition of {w}?|What's the meaning of {w}?|Give me the definition of {w}.
Give me the meaning of {w}.|Tell me the meaning of {w}.|Tell me the meaning of the word {q}.|Tell me the definition of {w}.
Tell me what {w} means.|Tell me what {q} means.|Do you know what {w} means?|Do you know the word {q}?|Do you know the meaning of {w}?
I don't know the word {w}.|I do not know what {q} means.|What is meant by {w}?|What is meant by {q}?|What do you understand by {w}?
I read the word {q}. What does it mean?|I saw the word {w} in a book. What does it mean?|I heard the word {q}. What is that?
The word {w}, what does it mean?|{w}, what does that mean?|{w}, please.|And {w}?|And what does {w} mean?|And {q}?|What about {w}?
What about the word {q}?|Next word: {w}.|Next: {w}|Now define {w}.|Now explain {q}.|How do you define {w}?|How do you explain {q}?
Can you tell me what {w} means?|Could you tell me what {q} means?|I would like to know what {w} means.|I want to know the meaning of {q}.
Describe the word {w}.|Describe {w}.|Tell me about {w}.|Tell me about the word {q}.|Write a definition of {w}.|Write a definition for {q}.
Give a short definition of {w}.|Give a short definition of {q}.|A short definition of {w}, please.|Short meaning of {w}?
Look up {w}.|Look up the word {q}.|What would a dictionary say about {w}?|Dictionary: {w}|define {w}|what does {w} mean|meaning {w}
In one sentence, what is {w}?|Explain {w} in one sentence.|Explain in a few words what {w} means.|What is the sense of {w}?
How would you explain the word {q}?|Is {q} a word? What does it mean?|Someone called it {w}. What does that mean?
I am learning English. What does {w} mean?|English is not my first language. What is {q}?|My teacher used the word {q}. What does it mean?"""
HELD_OUT_NOUN = """In simple words, what is {a}?|What exactly is {a}?|How would you describe {a} to me?|Would you mind telling me what {a} is?
I keep hearing about {s}. What are they?|Can you help me understand what {a} is?|Give me a quick explanation of what {a} is."""
HELD_OUT_ANY = """How would you define {w}?|Help me understand the word {q}.|What's the dictionary entry for {w}?
Could you please give me the definition of {w}?|I came across {q} today; what does it mean?|{w} - what is that?|Got a definition for {w}?
Please let me know what {w} means.|I'm not sure what {q} means, can you help?|In plain English, what does {w} mean?"""
HELD_OUT_VERB = """If you {w}, what are you doing?|What is meant by the verb {q}?|In plain English, what does it mean to {w}?"""
LEAD = """Hi! |Hello! |Hello, |Hi, |Hey, |Hey! |Please, |Quick question: |A question: |Question: |OK, |Okay. |Thanks. |Thank you. |Good morning! |
Good evening. |Excuse me, |Sorry, |Lily, |Hi Lily! |Hello Lily, |One more: |Another question: |Now: |Great! |Fine. |Well, |So, |Hmm, |Nice. """
TAIL = """ Please.| Thanks!| Thank you.| Be brief.| Keep it short.| Answer in one sentence.| I am curious.| Just the meaning."""


def _split(text):
    return [p for line in text.splitlines() for p in line.split("|") if p]


TRAIN = {"n": _split(NOUN), "v": _split(VERB), "a": _split(OTHER), "r": _split(ANY), "any": _split(ANY)}
HELD_OUT = {"n": _split(HELD_OUT_NOUN), "v": _split(HELD_OUT_VERB), "any": _split(HELD_OUT_ANY)}
LEADS, TAILS = _split(LEAD.replace("\n", "")), _split(TAIL)


def article(word):
    """The word with "a" or "an"; a proper noun stays bare."""
    if word[0].isupper():
        return word
    vowel = word[0] in "aeiou" and not word.startswith(("uni", "use", "usu", "eu", "one", "ura", "uti"))
    vowel = vowel or word.startswith(("hour", "honest", "honor", "heir"))
    return ("an " if vowel else "a ") + word


def plural(word):
    if word[0].isupper() or word.endswith("ss") is False and word.endswith("s"):
        return word
    if word.endswith(("ch", "sh", "x", "z", "ss")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith("man") and word != "human":
        return word[:-2] + "en"
    return word + "s"


def fill(phrase, word):
    text = phrase.format(a=article(word), s=plural(word), w=word, q=f'"{word}"')
    return text[0].upper() + text[1:] if phrase[0] == "{" and phrase[:3] != "{w}" else text


def ask(rng, entry, held_out=False):
    """A question about the entry (word, pos, main, form, score, gloss)."""
    word, pos, main, how = entry[:4]
    table = HELD_OUT if held_out else TRAIN
    if pos == "n" and (not main or rng.random() < (0.6 if how == "is" else 0.25)):
        phrases = table["n"]
    elif not main or pos in "va" and rng.random() < 0.3:
        phrases = table[pos] if pos in table else table["any"]
    else:
        phrases = table["any"]
    if held_out or rng.random() < 0.45:
        phrase = rng.choice(phrases)
    else:
        phrase = wording.build(rng, pos, phrases is table["n"])
        if phrase[0] in "abcdefghijklmnopqrstuvwxyz" and rng.random() < 0.7:
            phrase = phrase[0].upper() + phrase[1:]
    if pos == "n" and how == "means" and phrases is table["n"] and main and rng.random() < 0.6:
        phrase = phrase.replace("{a}", "{w}").replace("{s}", "{w}")  # "What is music?"
    text = fill(phrase, word)
    return text if held_out else decorate(rng, text)


def decorate(rng, text):
    """Greetings, missing punctuation, lower case: the ways people really type."""
    r = rng.random()
    if r < 0.12:
        lead = rng.choice(LEADS)
        text = lead + (text[0].lower() + text[1:] if lead[-2] in ",:" and not text.startswith("I ") else text)
    elif r < 0.18 and text[-1] in ".?":
        text += rng.choice(TAILS)
    r = rng.random()
    if r < 0.14:
        text = text.lower()
    elif r < 0.17:
        text = text[0].lower() + text[1:]
    elif r < 0.18:
        text = text.upper()
    r = rng.random()
    if r < 0.16 and text[-1] in ".?":
        text = text[:-1]
    elif r < 0.18 and text[-1] == "?":
        text += "?"
    elif r < 0.19:
        text = text.rstrip(".?") + "!"
    return text


def answer(entry):
    """The one answer for an entry: a sentence that holds the gloss word for word."""
    word, pos, _, how, _, gloss = entry
    if how == "is":
        head = article(word)
        return f"{head[0].upper()}{head[1:]} is {gloss}."
    if pos == "v":
        return f"To {word} means to {gloss}."
    return f'"{word[0].upper()}{word[1:]}" means {gloss}.'


THOUGHTS = ['The user asks what "{w}" means. I know this word.', 'I should give the meaning of "{w}".',
            'This is a question about the word "{w}". I will give a short definition.',
            'The user wants a definition of "{w}".', 'The word is "{w}". I will say what it means.']


def thought(rng, entry):
    return rng.choice(THOUGHTS).format(w=entry[0])


if __name__ == "__main__":
    generator = random.Random(1)
    demo = ("lighthouse", "n", 1, "is", 1.0, "a tower with a light that gives warning of shoals to passing ships")
    for _ in range(12):
        print(ask(generator, demo))
    print(answer(demo))
