"""Replies that are stopped, fail or break, and a browser that does: all made up here, whatever the server is."""

import time

from selenium.webdriver.common.keys import Keys

from browser import Page
from replies import delta, http_error, pieces, reply


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


def drops_unanswered_calls(page: Page, check):
    page.load()
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    page.script({"events": [delta(content="I call."), delta(tool_calls=[call])], "end": "hang"}, reply("Fine."))
    page.ask("Hi", finish=False)
    page.wait("the card", lambda: page.shown(".call"), 5)
    page.click("#stop")
    page.finish()
    check("a stopped call asks for no result", not page.all(".answer"))
    page.ask("On")
    sent = page.requests()[1]["body"]["messages"][1]
    check("and is not sent back", sent == {"role": "assistant", "content": "I call."}, str(sent))


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
    check(
        "editing while a reply is written replaces it",
        page.text(".assistant .content") == "second" and len(page.all(".message")) == 2,
    )
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
        for (const name of [key, 'lily.chat.bad', 'lily.chat.odd']) {
          dispatchEvent(new StorageEvent('storage', { key: name }));
        }""")
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
    page.script(
        {**http_error(503, "Busy."), "headers": {"Retry-After": "7"}},
        {"unreachable": True},
        {"status": 401, "headers": {}, "body": ""},
        {"status": 500, "headers": {}, "body": "<h1>oops</h1>"},
    )
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
    check(
        "an error within the stream is shown",
        "Out of memory." in page.text(".error") and page.text(".assistant .content") == "Half",
    )
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


CASES = [
    stops_a_stream,
    drops_unanswered_calls,
    runs_apart,
    deletes_while_writing,
    cuts_while_writing,
    shares_with_other_tabs,
    says_when_storage_is_full,
    calms_down,
    tells_errors,
    keeps_broken_streams,
    survives_reload_while_writing,
]
