"""Drives the page in a headless Chromium and keeps count of checks."""

import shutil
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

SCRIPTED_FETCH = (Path(__file__).parent / "scripted_fetch.js").read_text()


class Checks:
    """One line a check on stdout."""

    def __init__(self):
        self.failed = 0
        self.passed = 0

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
            print(f"ok    {name}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {name}{': ' if detail else ''}{detail}", flush=True)
        return bool(good)


class Page:
    def __init__(self, address, shots, patience):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"):
            options.add_argument(argument)
        options.binary_location = shutil.which("chromium") or ""
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(120)
        self.address = address.rstrip("/") + "/"
        self.shots = Path(shots) if shots else None
        self.patience = patience  # seconds for whatever a server does

    def load(self, width=1280, height=860, dark=False, fresh=True):
        """Opens the page; `fresh` forgets what the browser keeps."""
        self.size(width, height)
        self.scheme("dark" if dark else "light")
        if fresh:
            self.driver.get(self.address + "favicon.svg")
            self.js("localStorage.clear(); sessionStorage.clear();")
        self.driver.get(self.address)
        self.wait("the model's name", lambda: self.text("#model") or self.shown("#offline"))

    def size(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, value, reduced_motion=False):
        features = [{"name": "prefers-color-scheme", "value": value}]
        if reduced_motion:
            features.append({"name": "prefers-reduced-motion", "value": "reduce"})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def script(self, *replies):
        """The next requests get these replies instead of the server's; scripted_fetch.js says what they are."""
        self.js(SCRIPTED_FETCH, list(replies))

    def requests(self):
        return self.js("return window.scripted_requests")

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def module(self, code, *arguments):
        """Runs `code` in an async function that may import() the page's modules."""
        wrapped = (
            f"const done = arguments[arguments.length - 1]; const given = arguments;"
            f"(async () => {{ {code} }})().then((value) => done({{value}}), "
            "(error) => done({error: String(error.stack)}));"
        )
        result = self.driver.execute_async_script(wrapped, *arguments)
        if "error" in result:
            raise AssertionError(result["error"])
        return result.get("value")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        found = self.all(selector)
        return found[-1].get_property("textContent").strip() if found else ""

    def shown(self, selector):
        return any(element.is_displayed() for element in self.all(selector))

    def click(self, selector):
        self.all(selector)[-1].click()

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def chord(self, *keys):
        """Holds all but the last key."""
        actions = webdriver.ActionChains(self.driver)
        for key in keys[:-1]:
            actions.key_down(key)
        actions.send_keys(keys[-1])
        for key in reversed(keys[:-1]):
            actions.key_up(key)
        actions.perform()

    def focused(self):
        return self.js("return document.activeElement.id || document.activeElement.className")

    def wait(self, what, ready, seconds=None):
        limit = time.monotonic() + (seconds or self.patience)
        while time.monotonic() < limit:
            value = ready()
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError(f"waited in vain for {what}")

    def ask(self, text, finish=True):
        """Types and sends; with `finish`, waits for the end of the reply."""
        self.one("#input").send_keys(text, Keys.ENTER)
        if finish:
            self.finish()

    def finish(self):
        self.wait("the reply's end", lambda: self.all(".message") and not self.shown("#stop"))

    def overflow(self):
        """Pixels that the page is wider than the window."""
        return self.js(
            "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth, "
            "...[...document.querySelectorAll('#scroll, .top, .dock')]"
            ".map((element) => element.scrollWidth + element.getBoundingClientRect().left))"
            " - innerWidth"
        )

    def shot(self, name):
        if not self.shots:
            return
        self.shots.mkdir(parents=True, exist_ok=True)
        time.sleep(0.35)  # transitions
        self.driver.save_screenshot(str(self.shots / f"{name}.png"))

    def complaints(self):
        """Errors on the console since the last call: exceptions, and breaches of the content security policy.
        Requests that fail are not among them, since some tests make them fail."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] == "SEVERE" and "Failed to load resource" not in entry["message"]
        ]
