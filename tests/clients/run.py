"""Drives a real `lily serve` with the bundled model by the official clients of OpenAI and Anthropic, and by plain HTTP.

    python3 run.py --binary LILY --model DIR --work FOLDER [--soak] [NAME ...]

The clients are installed in a virtual environment in FOLDER on the first run. The exit code is 77 where that is impossible.
NAMEs select tests, as in `python3 -m unittest -k`.
"""
import argparse
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")
MODULES = ["test_openai", "test_tools", "test_thinking", "test_sampling", "test_formats", "test_errors", "test_responses",
           "test_messages", "test_agents", "test_service", "test_reuse", "test_load"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def installed(folder):
    """Whether the folder's environment has what the requirements name; they are kept beside it when it is complete."""
    try:
        with open(os.path.join(folder, "installed.txt")) as kept, open(REQUIREMENTS) as wanted:
            return kept.read() == wanted.read()
    except OSError:
        return False


def make_environment(folder):
    python = os.path.join(folder, "bin", "python3")
    if installed(folder):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
    if made.returncode:
        skip("this Python cannot make a virtual environment (Debian: install python3-venv)")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    done = subprocess.run([*pip, "-r", REQUIREMENTS], capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip().splitlines() or ["no reason given"]
        skip(f"pip cannot install the clients: {why[-1]}")
    shutil.copy(REQUIREMENTS, os.path.join(folder, "installed.txt"))
    return python


def run_tests(options):
    import server
    server.BINARY, server.MODEL = os.path.abspath(options.binary), os.path.abspath(options.model)
    if options.soak:
        import soak
        return soak.run(options.soak)
    loader = unittest.TestLoader()
    if options.names:
        loader.testNamePatterns = [f"*{name}*" for name in options.names]
    suite = loader.loadTestsFromNames(MODULES)
    try:
        result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    finally:
        server.stop_shared()
    return 0 if result.wasSuccessful() and result.testsRun else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--soak", type=int, default=0, metavar="N", help="instead of the tests: N requests, and the memory after each 500")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    python = make_environment(os.path.join(os.path.abspath(options.work), "venv"))
    if os.path.abspath(sys.prefix) != os.path.dirname(os.path.dirname(python)):
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])
    sys.exit(run_tests(options))


if __name__ == "__main__":
    main()
