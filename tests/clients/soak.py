"""Memory over many short requests."""
import threading

from server import Connection, Server
from test_load import WORDS


def run(requests, threads=4):
    with Server("--cache-size", "64M", "--slots", "4") as at:
        done, lock, failed = [0], threading.Lock(), []

        def work():
            while True:
                with lock:
                    number = done[0]
                    if number >= requests:
                        return
                    done[0] += 1
                    if number in (200, 500) or (number and number % 500 == 0):
                        report(at, number)
                body = {"messages": [{"role": "user", "content": f"{number}: what is a {WORDS[number % len(WORDS)]}?"}], "max_tokens": 24,
                        "stream": number % 2 == 0}
                with Connection(at.port) as connection:
                    if connection.request("POST", "/v1/chat/completions", body).status != 200:
                        failed.append(number)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        at.wait_idle()
        report(at, requests)
        print(f"{len(failed)} failed")
        return bool(failed)


def report(at, number):
    metrics = at.metrics()
    print(f"{number:>6} requests: RSS {at.rss():.1f} MiB, cache {metrics['cache_bytes'] / 2**20:.1f} of {metrics['cache_budget_bytes'] / 2**20:.0f} MiB, "
          f"{metrics['cache_snapshots']:.0f} snapshots", flush=True)
