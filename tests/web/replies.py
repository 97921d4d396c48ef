"""Replies that a server could give, for scripted_fetch.js."""

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
    return [delta(**{name: text[i : i + size]}) for i in range(0, len(text), size)]


USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 1200,
        "completion_tokens": 34,
        "total_tokens": 1234,
        "prompt_tokens_details": {"cached_tokens": 1024},
    },
    "timings": {"prompt_per_second": 2210.4, "predicted_per_second": 188.2},
}
DONE = "data: [DONE]\n\n"


def reply(text, reasoning="", finish="stop", **options):
    events = [
        ": keep-alive\n\n",
        delta(role="assistant"),
        *pieces(reasoning, name="reasoning_content"),
        *pieces(text),
        delta(finish),
        USAGE,
        DONE,
    ]
    return {"events": events, **options}


def http_error(status, message, **headers):
    return {"status": status, "headers": headers, "body": '{"error": {"message": "%s", "type": "x"}}' % message}
