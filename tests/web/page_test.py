#!/usr/bin/env python3
"""Drives the web page of a running server in a headless Chromium.

    python3 -m venv VENV && VENV/bin/pip install selenium        # and chromium, chromium-driver from Debian
    VENV/bin/python tests/web/page_test.py http://127.0.0.1:PORT [--shots FOLDER] [--only NAME] [--patience SECONDS]

Prints one line a check. Exit code 1 if one failed. The server's model may be any:
replies whose text matters are made up in the browser.
"""

import argparse
import sys

import fault_cases
import markdown_cases
import reply_cases
import server_cases
from browser import Checks, Page

GROUPS = {
    "server": server_cases.CASES,
    "replies": reply_cases.CASES,
    "faults": fault_cases.CASES,
    "markdown": markdown_cases.CASES,
}


def run_case(page, checks, case):
    name = case.__name__
    try:
        case(page, lambda what, good, detail="": checks.check(f"{name}: {what}", good, detail))
    except Exception as error:  # whatever selenium throws fails this case only
        checks.check(name, False, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        page.shot(f"failed_{name}")
    complaints = page.complaints()
    checks.check(f"{name}: nothing on the console", not complaints, "; ".join(complaints[:3]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--shots", help="folder for screenshots")
    parser.add_argument("--only", help="a group (server, replies, faults, markdown) or a case")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a reply")
    arguments = parser.parse_args()
    cases = [
        case
        for group, group_cases in GROUPS.items()
        for case in group_cases
        if arguments.only in (None, group, case.__name__)
    ]
    checks = Checks()
    page = Page(arguments.address, arguments.shots, arguments.patience)
    try:
        for case in cases:
            run_case(page, checks, case)
    finally:
        page.driver.quit()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
