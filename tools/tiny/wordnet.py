"""Reads WordNet 3.0 (Debian package wordnet-base) and writes the word list the model is to know.

Each line of the result is: word, part of speech, 1 if it is the word's main sense, "is" for things
that can be counted ("A dog is ...") or "means", score, gloss.
    python wordnet.py --dict /usr/share/wordnet --words 25000 --out build/words.tsv
"""
import argparse
import collections
import os
import re

POS_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
SS_TYPE = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
# A gloss with one of these stems is offensive or vulgar, or says that the word is.
SKIP_GLOSS = re.compile(
    r"offensive|\bslur\b|obscen|vulgar|disparag|derogat|sexual|copulat|prostitut|genital|\bpenis|"
    r"vagina|\brap(e|ist)\b|masturbat|\bnegro|fornicat|\berotic|\banus\b|feces|excrement|testic(le|ular)|"
    r"\bbreasts|buttock|homosex|lesbian|pornograph|orgasm|scrotum|brothel", re.I)
SKIP_WORDS = set("nigger negro colored fag faggot gook kike dyke queer tit tits ass arse bitch whore slut "
                 "bastard crap shit fuck piss cunt cock prick pussy wop jap spic wog squaw gypsy".split())
# Lexicographer files whose nouns can mostly be counted: animal, artifact, body, group, location,
# object, person, plant, shape, time.
COUNTABLE = {"05", "06", "08", "14", "15", "17", "18", "20", "25", "28"}
STOP = set("be a an the i he it at as in us do go no or so am are is was have has who by on".split())


def clause(gloss):
    """The definition's first clause, without a leading label such as "(botany)"."""
    text = re.split(r';\s*"|:\s*"', gloss)[0].split(";")[0].strip()
    text = re.sub(r"^(\([^)]*\)[,:]?\s*)+", "", text).strip().rstrip(":,. ")
    text = re.sub(r"\s+", " ", text.replace("`", "'").replace('"', "'"))
    words = text.split(" ")
    if len(words) > 24:  # keep answers short: cut a long clause at a comma
        head = ""
        for part in text.split(","):
            if head and len((head + part).split()) > 22:
                break
            head = head + "," + part if head else part
        if 6 <= len(head.split()) <= 26 and head.count("(") == head.count(")"):
            text = head
    return text.rstrip(",. ")


def read_glosses(folder):
    """(pos, offset) -> (spelling of each lemma, whole gloss, is an instance such as a city, file)."""
    out = {}
    for pos, name in POS_FILES.items():
        with open(f"{folder}/data.{name}", encoding="latin-1") as f:
            for line in f:
                if line.startswith("  "):
                    continue
                head, gloss = line.split(" | ", 1)
                parts = head.split()
                count = int(parts[3], 16)
                lemmas = [re.sub(r"\((a|p|ip)\)$", "", w) for w in parts[4:4 + 2 * count:2]]
                spelling = {w.lower(): w.replace("_", " ") for w in lemmas}
                out[pos, parts[0]] = (spelling, gloss.strip(), "@i" in parts, parts[1])
    return out


def read_senses(folder):
    """lemma -> pos -> offsets, the most frequent sense first."""
    out = collections.defaultdict(dict)
    for pos, name in POS_FILES.items():
        with open(f"{folder}/index.{name}", encoding="latin-1") as f:
            for line in f:
                if not line.startswith("  "):
                    p = line.split()
                    out[p[0]][pos] = p[-int(p[2]):]
    return out


def read_counts(folder):
    """(lemma, pos) -> tagged occurrences of its senses: all, and of the first sense."""
    total, first = collections.Counter(), collections.Counter()
    with open(f"{folder}/cntlist.rev", encoding="latin-1") as f:
        for line in f:
            key, number, count = line.split()
            lemma, rest = key.split("%")
            total[lemma, SS_TYPE[rest[0]]] += int(count)
            if number == "1":
                first[lemma, SS_TYPE[rest[0]]] += int(count)
    return total, first


def gloss_counts(glosses, lemmas):
    """How often each lemma (of one to three words) occurs in WordNet's own text."""
    out = collections.Counter()
    for _, gloss, _, _ in glosses.values():
        words = re.findall(r"[a-z]+(?:['-][a-z]+)*", gloss.lower())
        for i, word in enumerate(words):
            if word not in lemmas and word.endswith("s"):
                word = word[:-1]
            out[word] += 1
            for n in (2, 3):
                phrase = "_".join(words[i:i + n])
                if phrase in lemmas:
                    out[phrase] += 1
    return out


def usable(gloss, everyday):
    return not SKIP_GLOSS.search(gloss) and 2 <= len(clause(gloss).split()) <= (40 if everyday else 27)


def form(word, pos, lexfile, text):
    if pos != "n" or word[0].isupper():
        return "is" if pos == "n" else "means"
    article = re.match(r"(a|an|any|one|someone) ", text)
    plural = word.endswith("s") and not re.search(r"(ss|us|is)$", word)
    return "is" if article and lexfile in COUNTABLE and not plural else "means"


def select(folder, limit, extra):
    glosses, senses = read_glosses(folder), read_senses(folder)
    total, first = read_counts(folder)
    seen = gloss_counts(glosses, senses)
    rows = []
    for lemma, by_pos in senses.items():
        if lemma in SKIP_WORDS or lemma in STOP or not re.fullmatch(r"[a-z][a-z'_-]*[a-z]", lemma):
            continue
        if lemma.count("_") > 2:
            continue
        # The tagged text is small, so WordNet's own glosses count too; many senses mean a common word.
        weight = 3 * sum(total[lemma, p] for p in by_pos) + seen[lemma]
        weight += 0.5 * sum(len(o) for o in by_pos.values()) + (50 if lemma in extra else 0)
        ranked = sorted(by_pos, key=lambda p: (-first[lemma, p], -len(by_pos[p]), "nvar".index(p)))
        kept = False
        if lemma in extra and "n" in by_pos and glosses["n", by_pos["n"][0]][3] in COUNTABLE:
            ranked = ["n"] + [p for p in ranked if p != "n"]  # a bear is an animal first
        for rank, pos in enumerate(ranked):
            sense = next((glosses[pos, o] for o in by_pos[pos][:2] if usable(glosses[pos, o][1], lemma in extra)), None)
            if sense is None:
                continue
            spelling, gloss, instance, lexfile = sense
            text = clause(gloss)
            if rank > 0 and (pos in "ar" or total[lemma, pos] < 2) and not (pos == "n" and lemma in extra):
                continue
            word = spelling.get(lemma, lemma.replace("_", " "))
            if word[0].isupper() and not first[lemma, pos]:
                weight /= 2  # genera and places that the tagged text never names
            if instance and not seen[lemma] and total[lemma, pos] < 2:
                continue
            main = not kept
            kept = True
            rows.append((word, pos, int(main), form(word, pos, lexfile, text), weight if main or lemma in extra
                         else weight / 3, text))
    rows.sort(key=lambda r: -r[4])
    return rows[:limit]


def load(path):
    """The word list as tuples (word, pos, main, form, score, gloss)."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            word, pos, main, how, score, gloss = line.rstrip("\n").split("\t")
            rows.append((word, pos, int(main), how, float(score), gloss))
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dict", default="/usr/share/wordnet")
    ap.add_argument("--words", type=int, default=25000)
    ap.add_argument("--common", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "common.txt"))
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    with open(args.common, encoding="utf-8") as f:
        extra = set(f.read().split())  # everyday words that are rare in WordNet's own counts
    rows = select(args.dict, args.words, extra)
    with open(args.out, "w", encoding="utf-8") as f:
        for word, pos, main_, how, score, gloss in rows:
            f.write(f"{word}\t{pos}\t{main_}\t{how}\t{score:.1f}\t{gloss}\n")
    print(len(rows), "entries,", sum(r[2] for r in rows), "main senses, lowest score", rows[-1][4])


if __name__ == "__main__":
    main()
