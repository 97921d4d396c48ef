"""The page's Markdown, in the browser: Markdown -> HTML."""

from pathlib import Path

from browser import Page
from replies import CODE, INJECTIONS

PROBE = (Path(__file__).parent / "markdown_probe.js").read_text()
LINK = 'target="_blank" rel="noopener noreferrer nofollow"'

# Source, and the HTML that it becomes.
CASES_OF = [
    ("a\n\nb", "<p>a</p><p>b</p>"),
    ("one\ntwo", "<p>one<br>two</p>"),
    ("# T", '<h3 class="heading-1">T</h3>'),
    ("###### T ##", '<h6 class="heading-6">T</h6>'),
    ("#no", "<p>#no</p>"),
    (
        "**b** *i* _j_ ***k*** ~~d~~",
        "<p><strong>b</strong> <em>i</em> <em>j</em> <em><strong>k</strong></em> <del>d</del></p>",
    ),
    ("snake_case_name 2 * 3 * 4", "<p>snake_case_name 2 * 3 * 4</p>"),
    ("**标题：**内容", "<p><strong>标题：</strong>内容</p>"),
    ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
    ("**open", "<p>**open</p>"),
    ("`a*b*` ``c`d``", "<p><code>a*b*</code> <code>c`d</code></p>"),
    (r"\*a\* \`", "<p>*a* `</p>"),
    ("`<b>`", "<p><code>&lt;b&gt;</code></p>"),
    ("---", "<hr>"),
    ("text\n---", "<p>text</p><hr>"),
    ("- a\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
    ("3. a\n4. b", '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>'),
    (
        "- a\n  - b\n    - c\n- d",
        "<ul><li><p>a</p><ul><li><p>b</p><ul><li><p>c</p></li></ul></li></ul></li><li><p>d</p></li></ul>",
    ),
    ("1. a\n  - b\n2. c", "<ol><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ol>"),
    ("1. a\n\n   b\n\n2. c", "<ol><li><p>a</p><p>b</p></li><li><p>c</p></li></ol>"),
    ("- a\n\nb", "<ul><li><p>a</p></li></ul><p>b</p>"),
    ("a\n- b", "<p>a</p><ul><li><p>b</p></li></ul>"),
    ("> a\n> > b\n\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"),
    (
        "| a | b |\n|:-:|--:|\n| 1 | `x` |\n| 2 |",
        '<div class="table"><table>'
        '<thead><tr><th class="align-center">a</th><th class="align-right">b</th></tr></thead>'
        '<tbody><tr><td class="align-center">1</td><td class="align-right"><code>x</code></td></tr>'
        '<tr><td class="align-center">2</td>'
        '<td class="align-right"></td></tr></tbody></table></div>',
    ),
    ("a | b", "<p>a | b</p>"),
    ("[a](https://x.org/a_(b)_c)", f'<p><a href="https://x.org/a_(b)_c" {LINK}>a</a></p>'),
    ('[**a**](mailto:a@x.org "t")', f'<p><a href="mailto:a@x.org" {LINK}><strong>a</strong></a></p>'),
    ("see https://x.org/a.", f'<p>see <a href="https://x.org/a" {LINK}>https://x.org/a</a>.</p>'),
    ("(https://x.org/a)", f'<p>(<a href="https://x.org/a" {LINK}>https://x.org/a</a>)</p>'),
    ("[a](javascript:b)", "<p>[a](javascript:b)</p>"),
    ("[a](/local)", "<p>[a](/local)</p>"),
    ("a[0](1)", "<p>a[0](1)</p>"),
    ("![p](https://x.org/p.png)", f'<p><a href="https://x.org/p.png" {LINK}>p</a></p>'),
    ("a<br>b<br/>c", "<p>a<br>b<br>c</p>"),
    (
        "\\(a_1 * b * c\\) and $$x^*$$",
        '<p><span class="math">\\(a_1 * b * c\\)</span> and <span class="math">$$x^*$$</span></p>',
    ),
    ("$5 and $6", "<p>$5 and $6</p>"),
    (
        "- [x] a\n- [ ] b",
        '<ul><li class="task"><p><input type="checkbox" disabled="" checked="">a</p></li>'
        '<li class="task"><p><input type="checkbox" disabled="">b</p></li></ul>',
    ),
    ("a\r\nb", "<p>a<br>b</p>"),
    ("", ""),
]

CODE_CASES = [  # source, language, code
    ("```js\na < b\n\n  c\n```", "js", "a < b\n\n  c"),
    ("~~~\n```\n~~~", "text", "```"),
    ("````md\n```\nx\n```\n````", "md", "```\nx\n```"),
    ("```py\nnever closed", "py", "never closed"),
    ("1. a\n   ```sh\n   ls\n     -l\n   ```", "sh", "ls\n  -l"),
    ("- a\n\n  ```\n  - x\n\n  # y\n  ```\n- b", "text", "- x\n\n# y"),
]

# No marker of this document is ever part of its text, so none may show, however little of it has come.
CLEAN = """# Title of it

Some **bold and *nested* text** with `code` and ~~old~~ words, [a link](https://x.org/long) too.

- first **item**
- second `item`
  1. inner *one*
  2. inner two

| name | value |
|---|---:|
| **a** | 1 |
| `b` | 2 |

> quoted **words**

```c
int x;
```

---

The end.
"""

HOSTILE_TEXTS = {
    "stars": "*" * 50000 + "a",
    "open stars": "*a " * 15000,
    "brackets": "[" * 50000,
    "links": "[a](" * 15000,
    "ticks": "`a``b" * 8000,
    "quotes": "> " * 20000 + "a",
    "lists": "\n".join(" " * (2 * i) + "- a" for i in range(200)),
    "spaces": "|" + " " * 50000 + "|x",
    "dashes": "- " * 25000 + "x",
    "bars": "|" * 50000 + "\n" + "|-" * 25000,
    "urls": "http://[" * 8000,
    "fence": "```" + " " * 50000 + "`",
    "escapes": "\\(" * 25000,
    "angles": "<" * 50000,
    "items": "- a\n" * 8000,
    "tabs": "\t" * 50000 + "x",
    "link spaces": "[a](" + " " * 50000 + "x",
}


def renders(page: Page, check):
    page.load()
    shown = page.module(PROBE + "return given[0].map((text) => html_of(text));", [source for source, _ in CASES_OF])
    for (source, expected), got in zip(CASES_OF, shown):
        check(f"markdown {source!r}", got == expected, f"got {got}")
    code = PROBE + "return given[0].map((text) => code_of(text));"
    for (source, *expected), got in zip(CODE_CASES, page.module(code, [case[0] for case in CODE_CASES])):
        check(f"markdown {source!r}", got == expected, f"got {got}")


def streams(page: Page, check):
    page.load()
    for name, text, markers in (
        ("a clean document", CLEAN, "*`~#|>"),
        ("code", CODE, ""),
        ("injections", INJECTIONS, ""),
    ):
        fault = page.module(PROBE + "return prefix_fault(...given);", text, markers)
        check(f"every prefix of {name} renders", fault == "", fault)
    for source, _ in CASES_OF:
        fault = page.module(PROBE + "return prefix_fault(...given);", source, "")
        if fault:
            check(f"every prefix of {source!r} renders", False, fault)
    fault = page.module(PROBE + "return random_fault(1);")
    check("random texts render the same in pieces and at once", fault == "", fault)


def takes_hostile_texts(page: Page, check):
    page.load()
    for name, text in HOSTILE_TEXTS.items():
        for is_open in (True, False):
            took = page.module(PROBE + "return milliseconds(...given);", text, is_open)
            check(f"hostile {name}, {'open' if is_open else 'closed'}: under 3 s", took < 3000, f"{took:.0f} ms")


CASES = [renders, streams, takes_hostile_texts]
