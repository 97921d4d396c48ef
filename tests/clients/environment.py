"""What the Python tests of the program share: their options, and a virtual environment of their own."""
import argparse
import os
import shutil
import subprocess
import sys


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def options(about, add=None):
    """--binary, --model and --work, and what `add` puts into the parser."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--work", required=True)
    if add:
        add(parser)
    return parser.parse_args()


def installed(folder, requirements):
    """Whether the folder's environment has what the requirements name; they are kept beside it when it is complete."""
    try:
        with open(os.path.join(folder, "installed.txt")) as kept, open(requirements) as wanted:
            return kept.read() == wanted.read()
    except OSError:
        return False


def make(work, requirements):
    """The Python of an environment in `work` with these requirements; skips the test where that is impossible."""
    folder = os.path.join(os.path.abspath(work), "venv")
    python = os.path.join(folder, "bin", "python3")
    if installed(folder, requirements):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
    if made.returncode:
        skip("this Python cannot make a virtual environment (Debian: install python3-venv)")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    done = subprocess.run([*pip, "-r", requirements], capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip().splitlines() or ["no reason given"]
        skip(f"pip cannot install {os.path.basename(os.path.dirname(requirements))}/requirements.txt: {why[-1]}")
    shutil.copy(requirements, os.path.join(folder, "installed.txt"))
    return python
