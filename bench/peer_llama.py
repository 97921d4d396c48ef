#!/usr/bin/env python3
"""Compares Lily with llama.cpp on one machine: same shapes, same bits, random weights, alternating in one run.

    python3 bench/peer_llama.py                          8 of the 40 layers, both engines, all rows
    python3 bench/peer_llama.py --layers 40 --rounds 2   the whole model: 20 GB of disk for each file, 24 GB of memory
    python3 bench/peer_llama.py --only decode --types q4_0 --json build/peer/decode.json
    python3 bench/peer_llama.py --prepare                builds llama.cpp and writes the models, measures nothing

llama.cpp comes with the PyPI package llama-cpp-python, which pip builds for this CPU: ten minutes or more, once, with a
C++ compiler. It and the models stay in --work. Every run of either engine is a process of its own. llama.cpp runs with
each of --types, with flash attention and without, and each row of Lily is compared with the best of those. Keep the
machine idle: on two cores, whatever else runs costs a spinning thread pool more than its share.
"""
import argparse
import functools
import json
import os
import pathlib
import platform
import shlex
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# Earlier ones are not known to have the architecture qwen35moe.
PACKAGE = "llama-cpp-python>=0.3.36"
# GCC 12 believes that ldtilecfg reads 8 bytes, not 64, and drops the stores to the others: llama.cpp crashes.
AMX_FIX = """#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(const char(*)[64])(config)))
#endif
"""
SHAPE = "qwen3.6-35b-a3b"
PREFILL, DECODE, DEPTH = [512, 2048], 32, [0, 4096]
TYPES = ["q4_0", "q4_k"]
FILE_BASE, FILE_PER_LAYER = 6e8, 4.8e8  # bytes, rounded up
SPARE_DISK = 2e9


def say(text):
    print(f"peer: {text}", file=sys.stderr, flush=True)


def run(command, log=None, **settings):
    """What the command writes to stdout; ends the program with the end of its stderr where it fails."""
    out, err = (log, subprocess.STDOUT) if log else (subprocess.PIPE, subprocess.PIPE)
    try:
        done = subprocess.run([str(word) for word in command], stdout=out, stderr=err, text=True, **settings)
    except OSError as error:
        raise SystemExit(f"peer: cannot run {command[0]}: {error.strerror}")
    if done.returncode != 0:
        told = f"see {log.name}" if log else "\n".join(done.stderr.splitlines()[-20:])
        raise SystemExit(f"peer: {' '.join(map(str, command[:3]))} ... ended with {done.returncode}\n{told}")
    return done.stdout


def cpu_fact(*names):
    """The first line of Linux's table that has one of these names."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.split("\t")[0] in names), "")


def cpu_name():
    if platform.system() == "Darwin":
        return run(["sysctl", "-n", "machdep.cpu.brand_string"]).strip()
    return cpu_fact("model name") or platform.processor() or platform.machine()


def core_count():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def comma_list(text):
    return [word for word in text.split(",") if word]


def build_settings(work):
    """Environment of the build: all of this CPU, and no crash by the AMX header of GCC 12."""
    fix = work / "amx_fix.h"
    fix.write_text(AMX_FIX)
    return {"CMAKE_BUILD_PARALLEL_LEVEL": str(core_count())} | os.environ | {
        "CMAKE_ARGS": "-DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAVA_BUILD=OFF",
        "CXXFLAGS": f"-include {shlex.quote(str(fix))}"}


def python_of(work):
    """The Python that has llama.cpp, built for this CPU and no other."""
    venv, stamp = work / "venv", work / "venv" / "built"
    wanted = "\n".join([PACKAGE, cpu_name(), cpu_fact("flags", "Features"), AMX_FIX])
    python = venv / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    say(f"building llama.cpp in {venv} (log: {work / 'install.log'})")
    run([sys.executable, "-m", "venv", "--clear", venv])
    # pip's cache may hold a build for another CPU.
    install = ["-m", "pip", "install", "--no-cache-dir", "--no-binary", "llama-cpp-python", "numpy", "gguf", PACKAGE]
    with open(work / "install.log", "w") as log:
        run([python, *install], log=log, env=build_settings(work))
    stamp.write_text(wanted)
    return python


def lily_model(options):
    model = options.work / f"lily-{options.layers}"
    if not model.exists():
        say(f"writing {model}")
        part = model.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        run([options.lily, "synth", "--shape", SHAPE, "--layers", options.layers, "--out", part])
        part.rename(model)
    return model


def gguf_path(options, kind):
    return options.work / f"{kind}-{options.layers}.gguf"


def write_gguf(options, kind):
    path = gguf_path(options, kind)
    if not path.exists():
        say(f"writing {path}")
        run([options.python, HERE / "peer_gguf.py", "--layers", options.layers, "--type", kind, "--out", path])


def phases(options):
    """All types side by side where the disk holds their files, else one after the other."""
    missing = [kind for kind in options.types if not gguf_path(options, kind).exists()]
    size = FILE_BASE + FILE_PER_LAYER * options.layers
    free = shutil.disk_usage(options.work).free - SPARE_DISK
    if len(missing) * size <= free:
        return [options.types]
    if size > free and missing == options.types:
        raise SystemExit(f"peer: {options.work} has no room for a file of {size / 1e9:.0f} GB")
    # What is there comes first: it makes room.
    return [[kind] for kind in sorted(options.types, key=lambda kind: kind in missing)]


def rows_of(options):
    rows = [("prefill", length) for length in PREFILL] if options.only != "decode" else []
    return rows + ([("decode", depth) for depth in DEPTH] if options.only != "prefill" else [])


def row_flags(options):
    """What `lily bench` and peer_worker.py both understand."""
    flags = ["--prefill", ",".join(map(str, PREFILL)), "--decode", DECODE, "--depth", ",".join(map(str, DEPTH)),
             "-r", options.repetitions, "--threads", options.threads]
    return flags + (["--only", options.only] if options.only else [])


def rates_of(result):
    """{row: tokens/s of every repetition} from the JSON of either engine."""
    rates = {}
    for row in result["rows"]:
        at = row.get("length" if row["kind"] == "prefill" else "depth", 0)
        rate = row["tokens_per_second"]
        if isinstance(rate, dict):
            rate = rate.get("repetitions") or rate["median"]
        rates[row["kind"], at] = rate if isinstance(rate, list) else [rate]
    return rates


def run_lily(options):
    out = options.work / "lily.json"
    out.unlink(missing_ok=True)
    storage = ["--no-mmap"] if options.no_mmap else []
    run([options.lily, "bench", "-m", lily_model(options), *storage, *row_flags(options), "--json", out])
    return {"engine": "lily"}, json.loads(out.read_text())


def run_llama(options, kind, flash_attention):
    text = run([options.python, HERE / "peer_worker.py", "-m", gguf_path(options, kind),
                "--flash-attention", flash_attention, *row_flags(options)])
    return {"engine": "llama.cpp", "type": kind, "flash_attention": flash_attention}, json.loads(text)


def label(setting):
    if setting["engine"] == "lily":
        return "Lily"
    return f"llama.cpp {setting['type']}, flash attention {setting['flash_attention']}"


def row_label(row):
    kind, at = row
    return f"prefill {at}" if kind == "prefill" else f"decode {DECODE} at depth {at}"


def measure_phase(options, types, report):
    peers = [(kind, flash_attention) for kind in types for flash_attention in ("on", "off")]
    work = [functools.partial(run_lily, options)] + [functools.partial(run_llama, options, *peer) for peer in peers]
    for number in range(options.rounds):
        # Back and forth, so that a machine that slows down slows all of them.
        for step in work if number % 2 == 0 else reversed(work):
            setting, result = step()
            rates = {row: values for row, values in rates_of(result).items() if row in rows_of(options)}
            rows = [{"kind": kind, "at": at, "tokens_per_second": values} for (kind, at), values in rates.items()]
            # Lily says what the machine could do at that time.
            report["runs"].append(setting | {"round": number, "machine": result.get("machine"), "rows": rows})
            told = ", ".join(f"{row_label(row)}: {statistics.median(values):.1f}" for row, values in rates.items())
            say(f"round {number + 1} of {options.rounds}, {label(setting)}: {told}")
            save(options, report)


def measure(options, report):
    lily_model(options)
    left = phases(options)
    while left:
        types, *left = left
        for kind in types:
            write_gguf(options, kind)
        if options.prepare:
            return
        measure_phase(options, types, report)
        for kind in types if left else []:
            gguf_path(options, kind).unlink()


def pooled(report, row):
    """{setting: tokens/s of all runs} of a row."""
    rates = {}
    for one in report["runs"]:
        for entry in one["rows"]:
            if (entry["kind"], entry["at"]) == row:
                rates.setdefault(label(one), []).extend(entry["tokens_per_second"])
    return rates


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(report, row):
    """A row of the table; None until both engines have it."""
    rates = pooled(report, row)
    lily = rates.pop("Lily", None)
    if not lily or not rates:
        return None
    best = max(rates, key=lambda name: statistics.median(rates[name]))
    return {"row": row_label(row), "lily": summary(lily), "llama.cpp": summary(rates[best]), "best": best,
            "ratio": statistics.median(lily) / statistics.median(rates[best])}


def save(options, report):
    """After every run: what an interruption leaves is whole."""
    report["table"] = [found for found in (compare(report, row) for row in rows_of(options)) if found]
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def text_of(rate):
    return f"{rate['median']:.1f} [{rate['min']:.1f}-{rate['max']:.1f}]"


def print_table(report):
    peer = report["llama.cpp"]
    print(f"{report['cpu']}, {report['threads']} threads; {report['layers']} layers of {SHAPE}, random weights")
    print(f"Lily {report['lily']}; llama.cpp {peer['version']}, commit {peer['commit']} "
          f"(llama-cpp-python {peer['bindings']})")
    print(f"tokens/s: median [min-max]; rounds: {report['rounds']}, repetitions in each: {report['repetitions']}\n")
    print(f"{'row':<24} {'Lily':<22} {'llama.cpp, best':<22} {'Lily / llama.cpp':<18} which")
    for row in report["table"]:
        which = row["best"].removeprefix("llama.cpp ")
        rates = f"{text_of(row['lily']):<22} {text_of(row['llama.cpp']):<22}"
        print(f"{row['row']:<24} {rates} {row['ratio']:<18.2f} {which}")


def lily_version(options):
    """Version, and the commit of the checkout that the program lies in."""
    version = run([options.lily, "--version"]).strip()
    try:
        folder = pathlib.Path(options.lily).resolve().parent
        return f"{version}, commit " + run(["git", "-C", folder, "describe", "--always", "--dirty"]).strip()
    except SystemExit:
        return version


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/peer", help="default: build/peer")
    parser.add_argument("--lily", default=ROOT / "lily", help="program (default: what the script lily builds)")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=core_count(), help="default: all cores")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-r", "--repetitions", type=int, default=2, help="of a row in a process")
    parser.add_argument("--no-mmap", action="store_true", help="Lily copies its weights too, as llama.cpp does")
    parser.add_argument("--only", choices=["prefill", "decode"])
    parser.add_argument("--types", type=comma_list, default=TYPES, help="of llama.cpp (default: q4_0,q4_k)")
    parser.add_argument("--json", type=pathlib.Path, help="everything, written after every run")
    parser.add_argument("--prepare", action="store_true", help="only make what a measurement needs")
    options = parser.parse_args()
    if not options.types or not set(options.types) <= set(TYPES):
        parser.error(f"--types: one or more of {','.join(TYPES)}")
    options.work = options.work.resolve()
    return options


def main():
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    options.python = python_of(options.work)
    about = json.loads(run([options.python, HERE / "peer_worker.py"]))["llama.cpp"]
    report = {"cpu": cpu_name(), "threads": options.threads, "layers": options.layers, "rounds": options.rounds,
              "repetitions": options.repetitions, "lily": lily_version(options), "llama.cpp": about,
              "load": os.getloadavg()[0], "runs": []}
    if not options.prepare and report["load"] > 0.5:
        say(f"something else runs on this machine: load {report['load']:.1f}")
    measure(options, report)
    if not options.prepare:
        print_table(report)


if __name__ == "__main__":
    main()
