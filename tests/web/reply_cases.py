"""What the page makes of replies and sends back. The replies are made up here, whatever the server is."""

import time

from selenium.webdriver.common.keys import Keys

from browser import Page
from replies import CODE, DONE, INJECTIONS, USAGE, delta, pieces, reply


def shows_numbers(page: Page, check):
    page.load()
    page.script(reply("Hello.", "Let me see."))
    page.ask("Hi")
    stats = page.text(".assistant .stats")
    check(
        "tokens, speed and cache are shown",
        all(part in stats for part in ("34 tokens", "188 tok/s", "1,200", "1,024 cached")),
        stats,
    )
    check("the meter adds prompt and reply", page.text("#meter-text").startswith("1,234"), page.text("#meter-text"))


def sends_what_it_should(page: Page, check):
    page.load()
    content, reasoning = "\n\n **Hello**  ", "Let me see. \n"
    page.script(reply(content, reasoning), reply("Again."))
    page.ask("Hi")
    page.click("#open-settings")
    page.one("#set-temperature").send_keys("0.5")
    page.one("#set-seed").send_keys("0")
    page.one("#set-key").send_keys("k1", Keys.TAB)
    page.click("#settings footer .primary")
    page.ask("More")
    first, second = (request["body"] for request in page.requests())
    names = {"temperature", "top_p", "top_k", "max_tokens", "presence_penalty", "seed", "tools"}
    check("an unset setting is not sent", not names & set(first), str(first))
    check(
        "a set one is, zero too",
        second.get("temperature") == 0.5 and second.get("seed") == 0 and not {"top_p", "top_k"} & set(second),
    )
    check(
        "the past reply goes back exactly as it came",
        second["messages"][1] == {"role": "assistant", "content": content, "reasoning_content": reasoning},
        str(second["messages"]),
    )
    check(
        "the API key is sent as a bearer token",
        page.requests()[1]["headers"].get("Authorization") == "Bearer k1"
        and "Authorization" not in page.requests()[0]["headers"],
    )
    check("usage is asked for", second["stream"] is True and second["stream_options"] == {"include_usage": True})


def other_spellings(page: Page, check):
    page.load()
    split = ": ping\r\n\r\ndata: " + '{"choices":[{"index":0,"delta":{"content":"käse 🧀"}}]}' + "\r"
    both = delta(reasoning="Hm.", reasoning_content="Hm.")
    only = delta(reasoning=" Yes.")
    page.script(
        {
            "events": [
                both,
                only,
                split,
                "\n\r\n",
                "event: x\ndata: " + '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}' + "\n\n",
                DONE,
            ]
        }
    )
    page.ask("Hi")
    page.click(".thinking summary")
    page.wait("thoughts", lambda: page.text(".thoughts"), 3)
    check("both names of reasoning are read, once", page.text(".thoughts") == "Hm. Yes.", page.text(".thoughts"))
    check("events with CRLF and names are read", page.text(".assistant .content") == "käse 🧀")


def thinks_aloud(page: Page, check):
    page.load()
    page.script(reply("Done.", "I think about this for a while and then for a little while longer. " * 8, wait=15))
    page.ask("Hi", finish=False)
    page.wait("thinking", lambda: page.text(".thinking-label").startswith("Thinking…"), 5)
    page.wait("seconds", lambda: page.text(".thinking-label").endswith(" s"), 5)
    check("thinking is announced while it lasts", page.text(".thinking-label").startswith("Thinking…"))
    page.click(".thinking summary")
    before = len(page.text(".thoughts"))
    page.wait("more thoughts", lambda: len(page.text(".thoughts")) > before, 5)
    check("opened thoughts grow", True)
    page.shot("thinking_live")
    page.finish()
    check("it stays open when the answer comes", page.js("return document.querySelector('.thinking').open"))


def injections_are_inert(page: Page, check):
    page.load()
    page.script(reply(INJECTIONS, INJECTIONS, wait=1))
    page.ask(INJECTIONS.replace("\n", " ").replace("\t", " "))
    page.click(".thinking summary")
    page.wait("thoughts", lambda: page.text(".thoughts"), 3)
    time.sleep(0.2)
    check("nothing of it runs", page.js("return window.hacked") is None)
    made = page.js(
        "return [...document.querySelectorAll('#thread :is(script, img, iframe, style, object, embed, form)')]"
        ".map((element) => element.outerHTML)"
    )
    check("it makes no elements", made == [], str(made))
    links = page.js(
        "return [...document.querySelectorAll('#thread a')]"
        ".map((a) => [a.protocol, a.rel, a.getAttributeNames().sort().join()])"
    )
    check(
        "links are http, https or mailto, with rel",
        all(
            protocol in ("http:", "https:", "mailto:") and "noopener" in rel and names == "href,rel,target"
            for protocol, rel, names in links
        ),
        str(links),
    )
    check("the text is shown as it is", "<script>window.hacked = 1</script>" in page.text(".assistant .content"))
    page.shot("injection")


def shows_code(page: Page, check):
    page.load()
    page.script(reply(CODE, "Simple."))
    page.ask("Show me code")
    check("code has its language", page.text(".code-language") == "python")
    page.js("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click(".copy-code")
    check(
        "the copy button copies the code",
        (page.js("return window.copied") or "").startswith("def gcd(a, b):\n    while"),
        str(page.js("return window.copied")),
    )
    page.shot("code")
    page.size(360, 740)
    check("code and tables fit a phone", page.overflow() <= 0, str(page.overflow()))
    page.shot("phone_code")
    page.scheme("dark")
    page.shot("phone_code_dark")


def scrolls(page: Page, check):
    page.load(height=600)
    page.script(reply("A line of text.\n\n" * 150, wait=6))
    page.ask("Hi", finish=False)
    page.wait("a long reply", lambda: page.js("return document.getElementById('scroll').scrollTop") > 300, 15)
    check(
        "the page follows the reply",
        page.js(
            "const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 60"
        ),
    )
    page.js("document.getElementById('scroll').scrollTop -= 250")
    time.sleep(0.1)
    at = page.js("return document.getElementById('scroll').scrollTop")
    time.sleep(0.5)
    check("scrolling up lets go", abs(page.js("return document.getElementById('scroll').scrollTop") - at) < 3)
    check("and offers to jump back", page.shown("#jump"))
    page.shot("jump")
    page.click("#jump")
    time.sleep(0.3)
    check(
        "jumping follows again",
        page.js(
            "const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 60"
        )
        and not page.shown("#jump"),
    )
    page.click("#stop")
    page.finish()
    page.one("#input").send_keys(Keys.PAGE_UP)
    time.sleep(0.2)
    check("Page Up scrolls the conversation", page.shown("#jump"))


def calls_tools(page: Page, check):
    page.load()
    page.click("#open-settings")
    page.one("#set-tools").send_keys("[{]")
    check("tools that are not JSON are refused", "Not JSON" in page.text("#tools-error"))
    page.click("#settings .row.start .button")
    check("the example is valid", page.text("#tools-error") == "")
    page.click("#settings footer .primary")
    call = {"index": 0, "id": "call_7", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    arguments = '{"city": "Lisbon", "days": [1, 2], "note": "a, b: {c}"}'
    parts = [
        delta(tool_calls=[{"index": 0, "function": {"arguments": arguments[i : i + 6]}}])
        for i in range(0, len(arguments), 6)
    ]
    page.script(
        {
            "events": [
                *pieces("I look.", name="reasoning_content"),
                delta(tool_calls=[call]),
                *parts,
                delta("tool_calls"),
                USAGE,
                DONE,
            ],
            "wait": 10,
        },
        reply("It is sunny."),
    )
    page.ask("How is the weather in Lisbon?")
    check("tools are sent", page.requests()[0]["body"]["tools"][0]["function"]["name"] == "get_weather")
    check(
        "a call is a folded card with its name",
        page.text(".call-name") == "get_weather" and not page.js("return document.querySelector('.call').open"),
    )
    page.click(".call summary")
    check(
        "its arguments are laid out",
        '"city": "Lisbon",\n' in page.text(".call pre code") and '"a, b: {c}"' in page.text(".call pre code"),
        page.text(".call pre code"),
    )
    page.shot("tool_call")
    page.one("#input").send_keys("Well?", Keys.ENTER)
    check("a message before the result is held back", len(page.all(".user")) == 1 and page.shown("#toast"))
    page.one(".answer textarea").send_keys('{"sky": "clear"}')
    page.click(".answer .primary")
    page.finish()
    sent = page.requests()[1]["body"]["messages"][-2:]
    check(
        "the call and its result go back",
        sent[0]["tool_calls"][0]
        == {"id": "call_7", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
        and sent[1] == {"role": "tool", "tool_call_id": "call_7", "content": '{"sky": "clear"}'},
        str(sent),
    )
    check("the reply goes on", page.text(".assistant .content") == "It is sunny.")
    check("the card shows the result", "clear" in page.all(".call-result pre")[0].get_property("textContent"))
    page.shot("tool_result")


def exports(page: Page, check):
    page.load()
    page.script(reply("Some **text**.", "Hm."))
    page.ask("Say it")
    chat = page.js("return JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith('lily.chat.'))[1])")
    text = page.module("const { chat_markdown } = await import('/export.js'); return chat_markdown(given[0]);", chat)
    check("export as Markdown", all(part in text for part in ("# Say it", "## You", "Some **text**.", "Hm.")), text)
    check(
        "export as JSON",
        page.module(
            "const { chat_json } = await import('/export.js'); return JSON.parse(chat_json(given[0])).messages.length;",
            chat,
        )
        == 2,
    )


CASES = [
    shows_numbers,
    sends_what_it_should,
    other_spellings,
    thinks_aloud,
    injections_are_inert,
    shows_code,
    scrolls,
    calls_tools,
    exports,
]
