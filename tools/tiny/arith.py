"""Small arithmetic: questions, answers and a short worked thought."""

WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
         "seventeen eighteen nineteen twenty").split()
ASK = """What is {e}?|What is {e}?|What's {e}?|what is {e}|Calculate {e}.|Compute {e}.|{e}|{e}=|{e} =|{e} = ?|{e}?|How much is {e}?|What does {e} make?|
Can you calculate {e}?|Please calculate {e}.|Tell me what {e} is.|Work out {e}.|What is the result of {e}?|Solve {e}.|Can you tell me what {e} is?|
Please tell me {e}.|What does {e} equal?|Add up: {e}|I need {e}.|Do you know what {e} is?|And {e}?|Hi! What is {e}?|Hello, what is {e}?|
Quick: {e}|Evaluate {e}.|What do you get for {e}?|How much does {e} make?|Find {e}.|give me {e}|Help me with {e}.|What about {e}?"""
ASK = [p for p in ASK.replace("\n", "").split("|") if p]


def number(rng, top=None):
    top = top or rng.choice([9, 20, 50, 100, 100, 500, 999, 999])
    return rng.randint(0, top)


def add_thought(x, y):
    a, b = str(x)[::-1], str(y)[::-1]
    carry, out = 0, []
    for i in range(max(len(a), len(b))):
        p, q = int(a[i]) if i < len(a) else 0, int(b[i]) if i < len(b) else 0
        t = p + q + carry
        terms = f"{p} + {q}" + (" + 1" if carry else "")
        carry = t // 10
        out.append(f"{terms} = {t}" + (f", write {t % 10}, carry 1." if carry else "."))
    return " ".join(out) + f" The sum is {x + y}."


def sub_thought(x, y):
    if x < y:
        return f"{x} is less than {y}, so the result is negative. {y} - {x} = {y - x}."
    a, b = str(x)[::-1], str(y)[::-1]
    borrow, out = 0, []
    for i in range(len(a)):
        p, q = int(a[i]), int(b[i]) if i < len(b) else 0
        t = p - q - borrow
        terms = f"{p} - {q}" + (" - 1" if borrow else "")
        borrow = int(t < 0)
        out.append(f"{terms}: borrow, {t + 10}." if borrow else f"{terms} = {t}.")
    return " ".join(out) + f" The difference is {x - y}."


def mul_thought(x, y):
    if x < 11 and y < 13 or y < 2 or x < 2:
        return f"{x} times {y} is {x * y}."
    if x < y:
        x, y = y, x
    parts = [int(d) * 10 ** (len(str(x)) - 1 - i) for i, d in enumerate(str(x)) if d != "0"]
    text = ", ".join(f"{p} × {y} = {p * y}" for p in parts)
    return text + (f". Together {' + '.join(str(p * y) for p in parts)} = {x * y}." if len(parts) > 1 else ".")


def draw(rng):
    """Operands, operator, result, thought."""
    r = rng.random()
    if r < 0.42:
        x, y = number(rng), number(rng)
        return x, y, "+", x + y, add_thought(x, y)
    if r < 0.72:
        x, y = number(rng), number(rng)
        if x < y and rng.random() < 0.9:
            x, y = y, x
        return x, y, "-", x - y, sub_thought(x, y)
    if r < 0.92:
        x, y = rng.randint(0, 12), rng.randint(0, 12)
        if rng.random() < 0.3:
            x = rng.randint(10, 99)
            y = rng.randint(2, 9)
        if rng.random() < 0.5:
            x, y = y, x
        return x, y, "*", x * y, mul_thought(x, y)
    y, q = rng.randint(1, 12), rng.randint(0, 12)
    return y * q, y, "/", q, f"{q} times {y} is {y * q}."


def express(rng, x, y, op):
    """The expression as a user types it."""
    if x <= 20 and y <= 20 and rng.random() < 0.12:
        x, y = WORDS[x], WORDS[y]
    r = rng.random()
    if r < 0.5:
        sign = {"+": ["+"], "-": ["-"], "*": ["*", "×", "x"], "/": ["/", "÷", ":"]}[op]
        gap = "" if rng.random() < 0.3 and isinstance(x, int) else " "
        return f"{x}{gap}{rng.choice(sign)}{gap}{y}"
    word = {"+": ["plus", "plus", "and"], "-": ["minus"], "*": ["times", "times", "multiplied by"], "/": ["divided by"]}[op]
    w = rng.choice(word)
    return f"{x} {w} {y}"


def story(rng):
    """A one-line word problem."""
    thing = rng.choice("apples coins books eggs pens cakes tickets marbles stamps cards flowers pears".split())
    x, y = rng.randint(2, 40), rng.randint(1, 20)
    who = rng.choice(["I", "Tom", "Anna", "Ben", "Mia"])
    have, have2, do = ("have", "do I", "I") if who == "I" else ("has", f"does {who}", who)
    s = "" if who == "I" else "s"
    r = rng.random()
    if r < 0.4:
        ask = f"{who} {have} {x} {thing} and {rng.choice(['buy', 'get', 'find'])}{s} {y} more. How many {thing} {have2} have?"
        return ask, x + y, f"{x} + {y} = {x + y}.", thing
    if r < 0.75:
        x, y = max(x, y), min(x, y)
        verb = rng.choice(["lose", "sell", "give away", "use"]).split()
        ask = f"{who} {have} {x} {thing} and {verb[0]}{s}{' away' if len(verb) > 1 else ''} {y}. How many {thing} {rng.choice(['are left', have2 + ' have'])}?"
        return ask, x - y, f"{x} - {y} = {x - y}.", thing
    x, y = rng.randint(2, 12), rng.randint(2, 10)
    ask = rng.choice([f"There are {x} boxes with {y} {thing} each. How many {thing} are there?",
                      f"A box holds {y} {thing}. How many {thing} are in {x} boxes?"])
    return ask, x * y, f"{x} × {y} = {x * y}.", thing


def other(rng):
    """Doubling, halving, comparing, counting on."""
    x, y = number(rng), number(rng)
    pick = rng.randrange(6)
    if pick == 0:
        return rng.choice([f"What is double {x}?", f"What is twice {x}?", f"Double {x}."]), f"2 × {x} = {2 * x}.", f"{x} + {x} = {2 * x}."
    if pick == 1:
        return rng.choice([f"What is half of {2 * x}?", f"Half of {2 * x}?"]), f"Half of {2 * x} is {x}.", f"{x} + {x} = {2 * x}."
    if pick == 2:
        y += x == y
        return rng.choice([f"Which is bigger, {x} or {y}?", f"Which number is larger, {x} or {y}?", f"What is more, {x} or {y}?"]), \
            f"{max(x, y)} is bigger than {min(x, y)}.", f"{max(x, y)} is more than {min(x, y)}."
    if pick == 3:
        y += x == y
        return rng.choice([f"Which is smaller, {x} or {y}?", f"What is less, {x} or {y}?"]), \
            f"{min(x, y)} is smaller than {max(x, y)}.", f"{min(x, y)} is less than {max(x, y)}."
    if pick == 4:
        return rng.choice([f"What comes after {x}?", f"Which number comes after {x}?", f"What number follows {x}?"]), f"{x + 1} comes after {x}.", f"{x} + 1 = {x + 1}."
    n = rng.randint(3, 12)
    return rng.choice([f"Count to {n}.", f"Count from 1 to {n}.", f"Can you count to {n}?"]), ", ".join(map(str, range(1, n + 1))) + ".", f"I count from 1 to {n}."


def turn(rng):
    """(question, answer, thought)"""
    r = rng.random()
    if r < 0.12:
        ask, value, thought, thing = story(rng)
        return ask, f"{thought[:-1]}, so the answer is {value} {thing}.", thought
    if r < 0.22:
        return other(rng)
    x, y, op, value, thought = draw(rng)
    if r > 0.93 and op in "+-":
        ask = rng.choice({"+": [f"Add {x} and {y}.", f"What is the sum of {x} and {y}?", f"Add {x} to {y}."],
                          "-": [f"Subtract {y} from {x}.", f"Take {y} away from {x}.", f"What is {y} less than {x}?"]}[op])
    else:
        ask = rng.choice(ASK).format(e=express(rng, x, y, op))
    sign = {"*": "×", "/": "÷"}.get(op, op)
    return ask, f"{x} {sign} {y} = {value}.", thought
