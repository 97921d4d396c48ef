"""Drives the chat page of a real `lily serve` with the bundled model in headless Chromium: see page_test.py.

    python3 run.py --binary LILY --model DIR --work FOLDER

Screenshots go to FOLDER/shots. The exit code is 77 where there is no Chromium (Debian: chromium, chromium-driver) or
no environment with Selenium can be made.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
import environment  # noqa: E402
import server  # noqa: E402


def main():
    options = environment.options(__doc__)
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            environment.skip(f"there is no {program}")
    python = environment.make(options.work, os.path.join(HERE, "requirements.txt"))
    server.BINARY, server.MODEL = os.path.abspath(options.binary), os.path.abspath(options.model)
    with server.Server("--quiet") as running:
        test = [python, os.path.join(HERE, "page_test.py"), running.url, "--shots", os.path.join(options.work, "shots")]
        sys.exit(subprocess.run(test).returncode)


main()
