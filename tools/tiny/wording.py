"""Builds questions about a word from parts, so that the model meets thousands of phrasings.

In every part {a} is the word with its article, {s} its plural, {w} the bare word and {q} the word in quotes.
"""


def parts(text):
    return [p for p in text.replace("\n", "").split("|")]


BARE = parts("{w}|{w}|{w}|{q}|{q}|the word {w}|the word {q}|the word {q}|the term {q}|the term {w}|the expression {q}|this word: {w}|this: {q}")
BEFORE = parts("||||please |can you |could you |would you |will you |could you please |I'd like you to |I want you to |kindly |try to |can you please |please try to |"
               "I need you to |are you able to |be so kind and |would you please |just |now |you should |maybe you can |you can |I ask you to |hey, ")
REQUEST = parts("define|define|explain|explain|describe|give me the definition of|give me a definition for|give the meaning of|tell me the meaning of|help me with|look up|clarify|"
                "tell me about|explain the meaning of|find the definition of|show me the meaning of|provide a definition of|provide the meaning of|write the definition of|"
                "say the meaning of|state the meaning of|tell me the definition of|make clear|translate into simple English|give an explanation of|give me an explanation for|"
                "teach me|teach me the meaning of|tell me something about|share the meaning of|offer a definition of|put into words|interpret|get me the definition of")
AFTER = parts("|||||, please| for me| to me| in one sentence| in simple words| briefly| in short| if you can| in easy words| to a child| in a few words| shortly| now| again| quickly| in English|"
              ", thanks| as in a dictionary| like a dictionary| so I understand it| for a beginner| for my homework")
KNOW = parts("tell me|can you say|do you know|I wonder|I want to know|I'd love to know|I have no idea|I am not sure|I forgot|remind me|explain|could you tell me|nobody told me|"
             "my friend asks|I never learned|I'd like to learn|please say|please explain|I do not understand|I must know|can you explain|who knows|I am asking|the question is|"
             "I have to find out|help me find out|I can't remember|we want to know|my son wants to know|she asked me|tell us|can anybody tell me|I don't get|it is unclear to me|"
             "would you tell me|I need to understand|do you have an idea|are you able to say|can you remember|I would be glad to know|I am trying to learn|I am curious")
CONTEXT = parts("I read {o} in a book|I saw {o} in the newspaper|Somebody said {o} today|There is {o} in this text|My boss used {o}|I found {o} in a poem|I never heard of {o}|{q} is new to me|"
                "{q} is a word I don't know|We learned {o} at school|The text says {q}|Here is a word: {w}|My book says {q}|I don't understand {o}|I found {o}|They talked about {o}|"
                "On the radio I heard {o}|The sign says {q}|A friend wrote {q}|I have a question about {o}|There is a word, {w}|I need help with {o}|Let's talk about {o}|"
                "Take {o}|Look at {o}|I like {o}|In a film they said {q}|My sister keeps saying {q}|The word is {w}|Word: {w}|My homework is about {o}|I want to use {o}")
IT = parts("What does it mean?|What does it mean?|What is that?|What is it?|what does that mean?|Can you explain it?|Please explain.|Define it.|What's the meaning?|Any idea?|What could it mean?|"
           "Explain it.|Tell me what it means.|What is meant?|Do you know it?|What does this mean?|Please define it.|Do you know what it means?|Can you define it?|What is the meaning?|"
           "Could you explain?|What do they mean?|Can you tell me what it means?|What does this word mean?|Give me the meaning.|Give me a definition.")
KIND = parts("meaning|meaning|definition|definition|sense|explanation|exact meaning|correct definition|simple definition|usual meaning|dictionary meaning|right meaning|basic meaning|"
             "main meaning|best definition|short definition|common meaning|dictionary definition|general meaning|first meaning|proper definition|meaning in English")
SHORT = parts("{w} = ?|{w} ...?|{w} def|def {w}|def: {w}|{w}, meaning|{w} definition|explain: {w}|word: {w}|{w} (meaning)|whats {w}|whats {a}|what {w} is?|{w} is what?|what means {w}?|"
              "what {w} mean|{w} explained|{w} in one sentence|define: {w}|meaning: {w}|explain {w} pls|pls define {w}|{w} what is it|{w}, what is it?|{w}? what's that|what's {q}|{w} meaning please|"
              "{w}, definition please|so, {w}?|{w} please|what is a word {w}|The meaning of {q}, please.|A definition of {w}.|Your definition of {w}?|{q}?|{q} - definition?|what about {q}|and {w}")
HOW = parts("How do you explain {o}?|How can one explain {o}?|How do people understand {o}?|How should I understand {o}?|How is {o} explained?|How is {o} defined?|How do dictionaries define {o}?|"
            "How do I use {o}? What does it mean?|How could you describe {o}?|How does a dictionary explain {o}?|How can I explain {o} to somebody?|How would a teacher explain {o}?|"
            "What can you tell me about {o}?|What do you know about {o}?|What should I know about {o}?|What stands {o} for?|What does {o} stand for?|What does {o} refer to?|What does {o} describe?|"
            "What do we call {w}?|What would you call {w}?|What does one mean by {o}?|What do they mean by {o}?|What does somebody mean who says {q}?|What do you think {w} means?|What might {o} mean?|"
            "When do you use {o}? What does it mean?|When do people say {q}?|Why do people say {q}? What does it mean?|Does {o} have a meaning?|Does {q} mean anything?|Is there a definition of {o}?|"
            "Have you heard of {o}?|Have you heard the word {q}? What does it mean?|Are you familiar with {o}?|Do you understand {o}?|Ever heard of {w}?|Which meaning does {o} have?")
NOUN = parts("Have you ever seen {a}? What is it?|Is there {a}? What is that?|What do you mean by {a}?|Someone mentioned {s}. What are those?|What makes something {a}?|How do you recognise {a}?|"
             "Tell me more about {s}.|What might {a} be?|When is something {a}?|I have never seen {a}. What is it?|What do you understand by {a}?|How does one define {a}?|What can you say about {s}?|"
             "Do you know {s}?|I found {a}. What is that?|They have {a}. What is that?|What is {a} supposed to be?|What should I imagine when I hear of {a}?|Could it be {a}? What is that?|"
             "We saw {a} yesterday. What is it?|{s}: what are they?|What are {s} in general?|Who would need {a}? And what is it?|He talked about {a}. What is it?|I am looking at {a}. What is it?|"
             "I dreamt of {a}. What is that?|How would a child describe {a}?|How can I describe {a}?|Describe {a} for me.|Describe to me what {a} is.|Is {a} a thing? What is it?|I heard about {s}. What are they?|"
             "People speak of {s}. What are they?|Read me the definition of {a}.|How do you explain {a}?|Explain {a} to me.|what would be {a}?|is {a} something? tell me what it is")
VERB = parts("When you {w}, what do you do?|What happens when people {w}?|What does a person do who wants to {w}?|I want to {w}. What does that mean?|They {w}. What is that?|To {w}: what does it mean?|"
             "What do I do if I {w}?|What is someone doing when they {w}?|If people {w}, what do they do?|How do you {w}? What does it mean?|What is the meaning of the verb {w}?|What is the verb {q} about?|"
             "Explain the verb {w}.|I don't know how to {w}. What is it?|Let us {w}. What does it mean?|Someone asked me to {w}. What does that mean?|I was told to {w}. What should I do?|verb: {w}|to {w}?|to {w}|"
             "what does it mean if you {w}|If I {w}, what does that mean?|What am I doing when I {w}?|Tell me what people do when they {w}.|He will {w}. What does he do?")
OTHER = parts("Something is {w}. What does that mean?|If it is {w}, how is it?|My friend says it is {w}. What does he mean?|Somebody called me {w}. What does it mean?|When is something {w}?|How is something that is {w}?|"
              "What is it like to be {w}?|Describe something that is {w}.|They said it was {w}. What is that?|The book says that he is {w}. What does it mean?|What do you call {w}?|How would you describe something {w}?|"
              "If someone is {w}, what does it mean?|What does it mean when things are {w}?|I feel {w}. What does that mean?")


def build(rng, pos, article_form):
    """A phrase with placeholders; article_form says that the question must use the noun form."""
    r = rng.random()
    o = rng.choice(BARE)
    if pos == "n" and article_form:
        if r < 0.35:
            return rng.choice(KNOW) + " what {a} is" + rng.choice(["", "", ".", "?", ", please"])
        if r < 0.45:
            return rng.choice(CONTEXT).format(o="{a}", q="{q}", w="{w}") + rng.choice([". ", ", ", "; ", " - "]) + rng.choice(IT)
        return rng.choice(NOUN)
    if pos == "v" and r < 0.25:
        return rng.choice(VERB)
    if pos == "a" and r < 0.15:
        return rng.choice(OTHER)
    r = rng.random()
    if r < 0.28:
        return rng.choice(BEFORE) + rng.choice(REQUEST) + " " + o + rng.choice(AFTER) + rng.choice([".", "?", ""])
    if r < 0.46:
        return rng.choice(KNOW) + f" what {o} " + rng.choice(["means", "means", "means", "is", "stands for"]) + rng.choice(AFTER + [""] * 20) + rng.choice([".", "?", ""])
    if r < 0.62:
        return rng.choice(CONTEXT).replace("{o}", o) + rng.choice([". ", ". ", ", ", "; ", ": ", " - "]) + rng.choice(IT)
    if r < 0.76:
        return rng.choice(["What is the ", "What's the ", "Tell me the ", "Give me the ", "I want the ", "I need a ", "Is there a ", "Do you have a ", "Do you know the ", "Say the ", "the ", "A ", "", "Can I have the ", "what would be the "]) \
            + rng.choice(KIND) + rng.choice([" of ", " of ", " for "]) + o + rng.choice(["?", "?", ".", ""])
    if r < 0.88:
        return rng.choice(HOW).replace("{o}", o)
    return rng.choice(SHORT)
