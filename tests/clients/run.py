"""Drives a real `lily serve` with the bundled model by the official clients of OpenAI and Anthropic, and by plain HTTP.

    python3 run.py --binary LILY --model DIR --work FOLDER [--soak] [NAME ...]

The clients are installed in a virtual environment in FOLDER on the first run. The exit code is 77 where that is impossible.
NAMEs select tests, as in `python3 -m unittest -k`.
"""
import os
import sys
import unittest

import environment

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")
MODULES = ["test_openai", "test_tools", "test_thinking", "test_sampling", "test_formats", "test_errors", "test_responses",
           "test_messages", "test_agents", "test_service", "test_reuse", "test_load"]


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


def add_options(parser):
    parser.add_argument("--soak", type=int, default=0, metavar="N", help="instead of the tests: N requests, and the memory after each 500")
    parser.add_argument("names", nargs="*")


def main():
    options = environment.options(__doc__, add_options)
    python = environment.make(options.work, REQUIREMENTS)
    if os.path.abspath(sys.prefix) != os.path.dirname(os.path.dirname(python)):
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])
    sys.exit(run_tests(options))


if __name__ == "__main__":
    main()
