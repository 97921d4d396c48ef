"""Cases that any server passes, whatever its model says."""

import json

from selenium.webdriver.common.keys import Keys

from browser import Page

QUESTION = "What is a lighthouse?"


def asks_and_streams(page: Page, check):
    page.load()
    check("the page names its model", page.text("#model") != "")
    check("an empty conversation offers examples", len(page.all("#examples button")) >= 3)
    page.shot("empty_light")
    page.js("""window.sizes = new Set();
        new MutationObserver(() => sizes.add(document.querySelector('.assistant')?.textContent.length))
          .observe(document.getElementById('thread'), { childList: true, subtree: true, characterData: true });""")
    page.ask(QUESTION)
    check("a reply comes", page.text(".assistant .content") != "", page.text(".assistant"))
    check("the reply arrives in pieces", page.js("return sizes.size") >= 3, str(page.js("return sizes.size")))
    check("the question is shown as it was typed", page.text(".user .bubble") == QUESTION)
    check("the reply says its tokens", "tokens" in page.text(".assistant .stats"), page.text(".assistant .stats"))
    check("the context in use is shown", "tokens" in page.text("#meter-text") and page.shown("#meter"))
    check("the conversation is listed by its first line", page.text(".chat-row .chat-title") == QUESTION)
    check("the end is told to screen readers", page.text("#status").startswith("Reply finished."))
    page.shot("desktop_light")


def folds_thinking(page: Page, check):
    page.load()
    page.ask(QUESTION)
    if not page.shown(".thinking summary"):
        check("this model sent no thoughts: passed over", True)
        return
    check("thinking is folded at first", not page.js("return document.querySelector('.thinking').open"))
    check("its label says how long", page.text(".thinking-label").startswith("Thought for"))
    page.click(".thinking summary")
    page.wait("unfolding", lambda: page.shown(".thoughts"), 3)
    check("a click unfolds it", page.text(".thoughts") != "")
    page.shot("thinking_open")
    page.click(".thinking summary")
    check("and folds it again", not page.js("return document.querySelector('.thinking').open"))
    page.click("#toggle-thinking")
    page.ask(QUESTION)
    last = page.all(".assistant")[-1]
    check("thinking can be switched off", not last.find_element("css selector", ".thinking").is_displayed())


def stops(page: Page, check):
    page.load()
    page.one("#input").send_keys("Tell me everything about ships, slowly, and in a long reply.", Keys.ENTER)
    page.keys(Keys.ESCAPE)
    page.finish()
    check("Esc leaves the page ready for the next message", page.shown("#send") and not page.shown("#stop"))
    page.ask(QUESTION)
    check("a reply comes after a stopped one", page.text(".assistant .content") != "")


def regenerates(page: Page, check):
    page.load()
    page.ask(QUESTION)
    first = page.all(".assistant")[0]
    page.click(".assistant .regenerate")
    page.finish()
    check("regenerating replaces the reply", len(page.all(".assistant")) == 1 and page.all(".assistant")[0] != first)
    check("and the new one has text", page.text(".assistant .content") != "")


def edits(page: Page, check):
    page.load()
    page.ask(QUESTION)
    page.ask("What is a ship?")
    check("a conversation goes on", len(page.all(".assistant")) == 2)
    page.all(".user .edit")[0].click()
    box = page.one(".edit-box")
    check("editing starts from the old text", box.get_property("value") == QUESTION)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("What is a boat?", Keys.ENTER)
    page.finish()
    check("editing cuts what followed", len(page.all(".message")) == 2, str(len(page.all(".message"))))
    check("and asks anew", page.text(".user .bubble") == "What is a boat?" and page.text(".assistant .content") != "")
    page.click("#toast .link-button")
    page.wait("undo", lambda: len(page.all(".message")) == 4, 3)
    check("the cut can be undone", page.all(".user .bubble")[0].text == QUESTION)


def keeps_conversations(page: Page, check):
    page.load()
    page.ask(QUESTION)
    reply = page.text(".assistant .content")
    page.load(fresh=False)
    page.click(".chat-row .chat-title")
    check("a conversation outlives a reload", page.text(".assistant .content") == reply)
    page.driver.refresh()
    page.wait("the conversation", lambda: page.text(".assistant .content"))
    check("its address leads back to it", page.text(".assistant .content") == reply)
    page.click(".chat-row .more")
    page.wait("the menu", lambda: page.shown("#menu button"), 3)
    page.all("#menu button")[0].click()
    page.keys(Keys.CONTROL, "a")
    page.keys("Towers", Keys.ENTER)
    check("renaming", page.text(".chat-row .chat-title") == "Towers")
    page.click(".chat-row .more")
    page.shot("menu")
    page.all("#menu button")[-1].click()
    check("deleting", not page.all(".chat-row") and not page.all(".message"))
    page.click("#toast .link-button")
    check("undoing it", page.text(".chat-row .chat-title") == "Towers" and page.text(".assistant .content") == reply)


def settings_survive(page: Page, check):
    page.load()
    page.click("#open-settings")
    page.one("#set-max_tokens").send_keys("24")
    page.one("#set-seed").send_keys("7")
    page.one("#set-system").send_keys("Answer briefly.")
    page.one("#set-key").send_keys("secret-of-this-tab", Keys.TAB)
    page.shot("settings")
    page.one("#set-top_p").send_keys("3")
    check(
        "a value out of range is refused",
        page.shown(".field-error") and 'top_p":null' in page.js("return localStorage['lily.settings']"),
    )
    page.click("#settings footer .primary")
    page.driver.refresh()
    page.wait("the page", lambda: page.text("#model") or page.shown("#offline"))
    page.click("#open-settings")
    check("settings survive a reload", page.one("#set-max_tokens").get_property("value") == "24")
    check("the system message too", page.one("#set-system").get_property("value") == "Answer briefly.")
    stored = json.dumps(page.js("return Object.entries(localStorage)"))
    check(
        "the API key is kept in the session only",
        "secret-of-this-tab" not in stored and page.one("#set-key").get_property("value") == "secret-of-this-tab",
    )
    page.click("#reset-settings")
    check(
        "reset",
        page.one("#set-max_tokens").get_property("value") == "" and page.one("#set-key").get_property("value") == "",
    )


def background(page):
    return page.js("return getComputedStyle(document.body).backgroundColor")


def is_dark(color):
    return sum(int(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]) < 200


def is_dark_at_night(page: Page, check):
    page.load(dark=True)
    check("dark where the system is", is_dark(background(page)), background(page))
    page.ask(QUESTION)
    page.shot("desktop_dark")
    page.click("#toggle-theme")
    check("the button makes it light", not is_dark(background(page)))
    page.driver.refresh()
    page.wait("the page", lambda: page.text("#model"))
    check("a chosen theme survives a reload", not is_dark(background(page)))


def fits_a_phone(page: Page, check):
    page.load(width=360, height=740)
    check("empty: no sideways scrolling", page.overflow() <= 0, str(page.overflow()))
    page.shot("phone_empty")
    page.ask(QUESTION)
    check("with a reply: no sideways scrolling", page.overflow() <= 0, str(page.overflow()))
    page.shot("phone")
    check("the sidebar is away", not page.shown("#new-chat"))
    page.click("#open-sidebar")
    page.wait("the drawer", lambda: page.shown("#new-chat"), 3)
    check("the drawer opens", page.js("return document.getElementById('page').inert"))
    page.shot("phone_drawer")
    page.keys(Keys.ESCAPE)
    check("Esc closes it", not page.shown("#new-chat"))
    page.click("#open-settings")
    check("settings fit", page.js("return document.getElementById('settings').scrollWidth <= innerWidth"))
    page.shot("phone_settings")


def works_by_keyboard(page: Page, check):
    page.load()
    page.js("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex');")
    page.keys(Keys.TAB)
    check(
        "the first tab stop skips to the message box", page.js("return document.activeElement.className") == "skip-link"
    )
    page.keys(Keys.ENTER)
    page.wait("the message box", lambda: page.focused() == "input", 3)
    page.keys("First line", Keys.SHIFT, Keys.ENTER)
    page.keys(Keys.NULL, "second line")
    check("Shift+Enter starts a line", page.one("#input").get_property("value") == "First line\nsecond line")
    page.keys(Keys.ENTER)
    page.finish()
    check("Enter sends", page.text(".user .bubble") == "First line\nsecond line")
    check("the focus stays in the message box", page.focused() == "input")
    page.keys(Keys.ARROW_UP)
    check("Arrow up edits the last message", page.focused() == "edit-box")
    page.keys(Keys.ESCAPE)
    check("Esc leaves it", not page.all(".edit-box"))
    page.chord(Keys.CONTROL, "/")
    check("Ctrl+/ shows the shortcuts", page.shown("#help"))
    page.shot("shortcuts")
    page.keys(Keys.ESCAPE)
    check("Esc closes them", not page.shown("#help"))
    page.chord(Keys.CONTROL, ",")
    check("Ctrl+, opens the settings", page.shown("#settings"))
    page.keys(Keys.ESCAPE)
    page.js("document.activeElement.blur()")
    page.keys("?")
    check("? shows the shortcuts", page.shown("#help"))
    page.keys(Keys.ESCAPE)
    page.chord(Keys.CONTROL, Keys.SHIFT, "o")
    check("Ctrl+Shift+O starts a conversation", not page.all(".message") and page.focused() == "input")
    page.js("document.getElementById('open-help').focus({ focusVisible: true })")
    ring = page.js("return getComputedStyle(document.activeElement).outlineStyle")
    check("focus is visible", ring == "solid", ring)


CASES = [
    asks_and_streams,
    folds_thinking,
    stops,
    regenerates,
    edits,
    keeps_conversations,
    settings_survive,
    is_dark_at_night,
    fits_a_phone,
    works_by_keyboard,
]
