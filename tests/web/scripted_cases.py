"""Cases whose replies are made up here, so that every kind of reply and fault is seen whatever the server is."""
import time

from selenium.webdriver.common.keys import Keys

from browser import Page

INJECTIONS = """<script>window.hacked = 1</script> <img src=x onerror="window.hacked = 1">
[one](javascript:window.hacked=1) [two](JaVaScRiPt:window.hacked=1) [three](data:text/html,<script>hacked=1</script>)
[four]( javascript:window.hacked=1) [five](<javascript:window.hacked=1>) [six](java\tscript:alert) [seven](vbscript:x)
<javascript:window.hacked=1> [eight](//evil.example/x) [nine](https://good.example/"onclick="window.hacked=1)
![ten](javascript:window.hacked=1) <a href="javascript:window.hacked=1">eleven</a> <svg/onload=window.hacked=1>

```"><script>window.hacked=1</script>
</code></pre><script>window.hacked = 1</script>
```

| <b>a</b> | [x](javascript:window.hacked=1) |
|---|---|
| <iframe src=//evil.example> | <style>*{display:none}</style> |
"""

CODE = """Here it is:

```python
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a
```

1. It **ends**, since `b` shrinks:
   - at least halved every second step
   - so *few* rounds
2. See [the article](https://en.wikipedia.org/wiki/Euclidean_algorithm).

| a | b | gcd |
|---|:-:|---:|
| 48 | 18 | 6 |
| 1071 | 462 | **21** |

> Short proofs are the best comments.
"""


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def pieces(text, size=5, name="content"):
    return [delta(**{name: text[i:i + size]}) for i in range(0, len(text), size)]


USAGE = {"choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234,
                                  "prompt_tokens_details": {"cached_tokens": 1024}},
         "timings": {"prompt_per_second": 2210.4, "predicted_per_second": 188.2}}
DONE = "data: [DONE]\n\n"


def reply(text, reasoning="", finish="stop", **options):
    events = [": keep-alive\n\n", delta(role="assistant"), *pieces(reasoning, name="reasoning_content"), *pieces(text),
              delta(finish), USAGE, DONE]
    return {"events": events, **options}


def http_error(status, message, **headers):
    return {"status": status, "headers": headers, "body": '{"error": {"message": "%s", "type": "x"}}' % message}


def shows_numbers(page: Page, check):
    page.load()
    page.script(reply("Hello.", "Let me see."))
    page.ask("Hi")
    stats = page.text(".assistant .stats")
    check("tokens, speed and cache are shown", all(part in stats for part in ("34 tokens", "188 tok/s", "1,200", "1,024 cached")), stats)
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
    check("a set one is, zero too", second.get("temperature") == 0.5 and second.get("seed") == 0 and not {"top_p", "top_k"} & set(second))
    check("the past reply goes back exactly as it came", second["messages"][1] ==
          {"role": "assistant", "content": content, "reasoning_content": reasoning}, str(second["messages"]))
    check("the API key is sent as a bearer token", page.requests()[1]["headers"].get("Authorization") == "Bearer k1"
          and "Authorization" not in page.requests()[0]["headers"])
    check("usage is asked for", second["stream"] is True and second["stream_options"] == {"include_usage": True})


def other_spellings(page: Page, check):
    page.load()
    split = ": ping\r\n\r\ndata: " + '{"choices":[{"index":0,"delta":{"content":"käse 🧀"}}]}' + "\r"
    both = delta(reasoning="Hm.", reasoning_content="Hm.")
    only = delta(reasoning=" Yes.")
    page.script({"events": [both, only, split, "\n\r\n", "event: x\ndata: " + '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}' + "\n\n", DONE]})
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


def stops_a_stream(page: Page, check):
    page.load()
    page.script(reply("word " * 400, wait=10), reply("Next."))
    page.ask("Hi", finish=False)
    page.wait("text", lambda: len(page.text(".assistant .content")) > 20, 5)
    page.shot("streaming")
    page.click("#stop")
    page.finish()
    kept = page.text(".assistant .content")
    check("stopping cancels the request", page.js("return scripted_aborts") == 1)
    check("and keeps what came", kept.startswith("word") and "Stopped." in page.text(".assistant .note"), kept)
    page.ask("On")
    sent = page.requests()[1]["body"]["messages"][1]["content"]
    check("a stopped reply goes back as it was", sent.strip() == kept)


def runs_apart(page: Page, check):
    page.load()
    page.script(reply("slow " * 200, wait=8), reply("quick"))
    page.ask("One", finish=False)
    page.wait("text", lambda: page.text(".assistant .content"), 5)
    page.click("#new-chat")
    page.ask("Two")
    check("another conversation can go on meanwhile", page.text(".assistant .content") == "quick")
    check("the list shows who is writing", page.shown(".chat-row .running"))
    page.all(".chat-row .chat-title")[1].click()
    page.finish()
    check("the first one lost nothing", page.text(".assistant .content") == ("slow " * 200).strip())


def deletes_while_writing(page: Page, check):
    page.load()
    page.script(reply("slow " * 200, wait=8))
    page.ask("One", finish=False)
    page.wait("text", lambda: page.text(".assistant .content"), 5)
    page.click(".chat-row .more")
    page.all("#menu button")[-1].click()
    time.sleep(0.5)
    kept = page.js("return Object.keys(localStorage).filter((key) => key.startsWith('lily.chat.'))")
    check("deleting stops the reply", page.js("return scripted_aborts") == 1 and not page.all(".message"))
    check("and nothing brings the conversation back", kept == [] and not page.all(".chat-row"), str(kept))
    page.click("#toast .link-button")
    check("but Undo does", page.text(".assistant .content").startswith("slow") and page.shown("#send"))


def cuts_while_writing(page: Page, check):
    page.load()
    page.script(reply("slow " * 200, wait=8), reply("second"))
    page.ask("One", finish=False)
    page.wait("text", lambda: page.text(".assistant .content"), 5)
    page.js("document.querySelector('.user .edit').click()")
    page.one(".edit-box").send_keys(" more", Keys.ENTER)
    page.finish()
    time.sleep(0.3)
    check("editing while a reply is written replaces it", page.text(".assistant .content") == "second" and len(page.all(".message")) == 2)
    check("and stops the old one", page.js("return scripted_aborts") == 1)
    check("only the new text was sent", [m["content"] for m in page.requests()[1]["body"]["messages"]] == ["One more"])


def shares_with_other_tabs(page: Page, check):
    page.load()
    page.script(reply("Here."))
    page.ask("Hi")
    page.js("""const [key, value] = Object.entries(localStorage).find(([name]) => name.startsWith('lily.chat.'));
        const chat = JSON.parse(value);
        chat.messages.push({ role: 'user', content: 'from elsewhere' });
        localStorage.setItem(key, JSON.stringify(chat));
        localStorage.setItem('lily.chat.bad', '{"id": 3');
        localStorage.setItem('lily.chat.odd', '{"id": "odd", "title": "x", "messages": [{"role": "robot"}]}');
        for (const name of [key, 'lily.chat.bad', 'lily.chat.odd']) dispatchEvent(new StorageEvent('storage', { key: name }));""")
    check("what another tab adds appears", page.text(".user .bubble") == "from elsewhere")
    check("entries that are none are passed over", len(page.all(".chat-row")) == 1)
    page.driver.refresh()
    page.wait("the page", lambda: page.text(".user .bubble"), 5)
    check("also when the page starts", len(page.all(".chat-row")) == 1)


def says_when_storage_is_full(page: Page, check):
    page.load()
    page.script(reply("Here."))
    page.js("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }")
    page.ask("Hi")
    check("a full storage is told", "full" in page.text("#toast"))
    check("and the conversation goes on", page.text(".assistant .content") == "Here.")


def calms_down(page: Page, check):
    page.load()
    page.scheme("light", reduced_motion=True)
    page.script({"events": [delta(role="assistant")], "end": "hang"})
    page.ask("Hi", finish=False)
    page.wait("dots", lambda: page.shown(".waiting .dots"), 5)
    check("reduced motion moves nothing", page.js("return document.getAnimations().length") == 0)
    page.scheme("light")
    check("else something does", page.js("return document.getAnimations().length") > 0)
    page.wait("how long it takes", lambda: "s" in page.text(".waiting"), 6)
    check("a long wait says so", page.text(".waiting").startswith("Reading the prompt"))
    page.click("#stop")
    page.finish()
    check("nothing came, and it says so", page.text(".assistant .note") == "Stopped.")


def tells_errors(page: Page, check):
    page.load()
    page.script(http_error(400, "The prompt has 9,001 tokens; the context is 8,192."), reply("Better."))
    page.ask("Hi")
    check("a refusal is shown with its message", "9,001 tokens" in page.text(".error"))
    page.shot("error")
    page.click(".error .button")
    page.finish()
    check("retrying works", page.text(".assistant .content") == "Better." and not page.all(".error"))
    page.script({**http_error(503, "Busy."), "headers": {"Retry-After": "7"}}, {"unreachable": True},
                {"status": 401, "headers": {}, "body": ""}, {"status": 500, "headers": {}, "body": "<h1>oops</h1>"})
    page.ask("Again")
    check("Retry-After is counted down", "ready in" in page.text(".error .button"), page.text(".error"))
    page.click(".error .button")
    page.finish()
    check("a server that is away is said to be", "does not answer" in page.text(".error"))
    page.click(".error .button")
    page.finish()
    check("401 leads to the key", any(button.text == "Enter API key" for button in page.all(".error .button")))
    page.click(".error .button")
    page.finish()
    check("a body that is not JSON is text", "oops" in page.text(".error") and not page.all(".error h1"))


def keeps_broken_streams(page: Page, check):
    for name, end in (("breaks", "break"), ("ends without its end", "close")):
        page.load()
        page.script({"events": pieces("The beginning of an answer"), "wait": 5, "end": end}, reply("Whole."))
        page.ask("Hi")
        check(f"a stream that {name} keeps what came", page.text(".assistant .content") == "The beginning of an answer")
        check("and says so", "broke" in page.text(".error"), page.text(".error"))
    page.load()
    page.script({"events": [*pieces("Half"), {"error": {"message": "Out of memory.", "code": 500}}]})
    page.ask("Hi")
    check("an error within the stream is shown", "Out of memory." in page.text(".error") and page.text(".assistant .content") == "Half")
    page.load(fresh=False)
    page.click(".chat-row .chat-title")
    check("it is still there after a reload", page.text(".assistant .content") == "Half")


def survives_reload_while_writing(page: Page, check):
    page.load()
    page.script({"events": pieces("Some text that came before the page was left."), "end": "hang"})
    page.ask("Hi", finish=False)
    page.wait("text", lambda: "left." in page.text(".assistant .content"), 5)
    page.driver.refresh()
    page.wait("the page", lambda: page.text(".assistant .content"), 5)
    check("a reload in the middle keeps what came", "left." in page.text(".assistant .content"))
    check("and says that it was cut off", "Cut off" in page.text(".assistant .note"))


def injections_are_inert(page: Page, check):
    page.load()
    page.script(reply(INJECTIONS, INJECTIONS, wait=1))
    page.ask(INJECTIONS.replace("\n", " ").replace("\t", " "))
    page.click(".thinking summary")
    page.wait("thoughts", lambda: page.text(".thoughts"), 3)
    time.sleep(0.2)
    check("nothing of it runs", page.js("return window.hacked") is None)
    made = page.js("return [...document.querySelectorAll('#thread :is(script, img, iframe, style, object, embed, form)')].map((e) => e.outerHTML)")
    check("it makes no elements", made == [], str(made))
    links = page.js("return [...document.querySelectorAll('#thread a')].map((a) => [a.protocol, a.rel, a.getAttributeNames().sort().join()])")
    check("links are http, https or mailto, with rel", all(protocol in ("http:", "https:", "mailto:") and "noopener" in rel and
          names == "href,rel,target" for protocol, rel, names in links), str(links))
    check("the text is shown as it is", "<script>window.hacked = 1</script>" in page.text(".assistant .content"))
    page.shot("injection")


def shows_code(page: Page, check):
    page.load()
    page.script(reply(CODE, "Simple."))
    page.ask("Show me code")
    check("code has its language", page.text(".code-language") == "python")
    page.js("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click(".copy-code")
    check("the copy button copies the code", (page.js("return window.copied") or "").startswith("def gcd(a, b):\n    while"), str(page.js("return window.copied")))
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
    check("the page follows the reply", page.js("const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 60"))
    page.js("document.getElementById('scroll').scrollTop -= 250")
    time.sleep(0.1)
    at = page.js("return document.getElementById('scroll').scrollTop")
    time.sleep(0.5)
    check("scrolling up lets go", abs(page.js("return document.getElementById('scroll').scrollTop") - at) < 3)
    check("and offers to jump back", page.shown("#jump"))
    page.shot("jump")
    page.click("#jump")
    time.sleep(0.3)
    check("jumping follows again", page.js("const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 60") and not page.shown("#jump"))
    page.click("#stop")


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
    parts = [delta(tool_calls=[{"index": 0, "function": {"arguments": arguments[i:i + 6]}}]) for i in range(0, len(arguments), 6)]
    page.script({"events": [*pieces("I look.", name="reasoning_content"), delta(tool_calls=[call]), *parts, delta("tool_calls"), USAGE, DONE], "wait": 10}, reply("It is sunny."))
    page.ask("How is the weather in Lisbon?")
    check("tools are sent", page.requests()[0]["body"]["tools"][0]["function"]["name"] == "get_weather")
    check("a call is a folded card with its name", page.text(".call-name") == "get_weather" and not page.js("return document.querySelector('.call').open"))
    page.click(".call summary")
    check("its arguments are laid out", '"city": "Lisbon",\n' in page.text(".call pre code") and '"a, b: {c}"' in page.text(".call pre code"), page.text(".call pre code"))
    page.shot("tool_call")
    page.one("#input").send_keys("Well?", Keys.ENTER)
    check("a message before the result is held back", len(page.all(".user")) == 1 and page.shown("#toast"))
    page.one(".answer textarea").send_keys('{"sky": "clear"}')
    page.click(".answer .primary")
    page.finish()
    sent = page.requests()[1]["body"]["messages"][-2:]
    check("the call and its result go back", sent[0]["tool_calls"][0] == {"id": "call_7", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
          and sent[1] == {"role": "tool", "tool_call_id": "call_7", "content": '{"sky": "clear"}'}, str(sent))
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
    check("export as JSON", page.module("const { chat_json } = await import('/export.js'); return JSON.parse(chat_json(given[0])).messages.length;", chat) == 2)


CASES = [shows_numbers, sends_what_it_should, other_spellings, thinks_aloud, stops_a_stream, runs_apart, deletes_while_writing,
         cuts_while_writing, shares_with_other_tabs, says_when_storage_is_full, calms_down, tells_errors, keeps_broken_streams, survives_reload_while_writing, injections_are_inert, shows_code, scrolls, calls_tools, exports]
