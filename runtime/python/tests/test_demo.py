# SPDX-License-Identifier: MIT
"""embeng.demo: its data, its held-out pairs, and that it learns more than popularity tells."""
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")

from embeng import checkpoint, demo  # noqa: E402
from embeng.demo import examples, packages, report  # noqa: E402

CONTROL = """\
Package: a-bin
Source: a (1.2-3)
Section: libs
Maintainer: One <one@example.org>
Installed-Size: 100
Depends: libc6 (>= 2.36), x | y, z:any [amd64],
 folded <!nocheck>

Package: a-doc
Source: a
Installed-Size: 20
Pre-Depends: libc6, w
Description: text
 Depends: not-this

Package: b
Section: net
"""


def start_demo(*arguments):
    """Run the demo as a program of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "embeng.demo", *map(str, arguments)], text=True,
                          capture_output=True, env=environment, timeout=300, check=False)
    print(done.stdout, done.stderr)
    return done


@pytest.fixture
def run_demo(capsys):
    """Give a function that runs the demo within this process."""
    def run(*arguments):
        arguments = [str(argument) for argument in arguments]
        capsys.readouterr()
        try:
            status = demo.main(arguments)
        except SystemExit as error:
            status = error.code
        out, err = capsys.readouterr()
        print(out, err)
        return subprocess.CompletedProcess(arguments, status, out, err)
    return run


def write_control(path, groups=12, members=30, baskets=900, seed=4):
    """Write packages that depend on some of one of `groups` of packages, and on common ones."""
    random = np.random.default_rng(seed)
    stanzas = []
    for k in range(baskets):
        group = random.integers(groups)
        own = [f"g{group}-{n}" for n in random.choice(members, 5, replace=False)]
        common = [f"common{n}" for n in random.choice(5, 2, replace=False)]
        stanzas.append(f"Package: p{k}\nSection: s{group}\nInstalled-Size: {k + 1}\n"
                       f"Depends: {', '.join(own + common)}\n")
    path.write_text("\n".join(stanzas))


def numbers(text, title):
    """Return the numbers behind the two bars that follow a title: the DLRM's and popularity's."""
    found = re.search(re.escape(title) + r".*\n.* ([\d.]+)\n.* ([\d.]+)\n", text)
    return float(found[1]), float(found[2])


# -- data


def test_control_stanzas():
    a, b = packages.parse_control(CONTROL)
    assert a == packages.Basket("a", ("libc6", "x", "z", "folded", "w"), "libs",
                                "One <one@example.org>", 120.0, 2)
    assert b == packages.Basket("b", (), "net", "", 0.0, 1)
    assert packages.parse_control("nonsense\n\n: x") == []


def test_python_distributions_are_read():
    source = packages.read_source("python")
    torch = next(basket for basket in source.baskets if basket.name == "torch")
    assert {"sympy", "networkx", "jinja2"} <= set(torch.items)
    assert torch.size > 1024 and torch.parts > 100


def test_sources_are_tried_in_order(monkeypatch, tmp_path):
    status = tmp_path / "status"
    status.write_text(CONTROL)
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    monkeypatch.setattr(packages._read_dpkg, "__defaults__", (str(status),))
    found = packages.read_source(None)
    assert [basket.name for basket in found.baskets] == ["a", "b"]
    assert "no apt-cache" in found.remark and "little data" in found.remark
    status.unlink()
    assert "Python" in packages.read_source(None).origin
    with pytest.raises(packages.NoDataError, match="status: No such file"):
        packages.read_source("dpkg")
    with pytest.raises(packages.NoDataError, match="no apt-cache"):
        packages.read_source("apt")


# -- examples


@pytest.fixture
def made(tmp_path):
    write_control(tmp_path / "control")
    source = packages.read_source(str(tmp_path / "control"))
    return examples.Examples(source.baskets, np.random.default_rng(8))


def test_nothing_held_out_is_known(made):
    names = {basket.name: set(basket.items) for basket in made.baskets}
    random = np.random.default_rng(9)
    for k, basket in enumerate(made.baskets):
        known = made.items[made.starts[k]:made.starts[k] + made.sizes[k]]
        assert {made.names[i] for i in [*known, made.held[k]]} <= names[basket.name]
        assert made.held[k] not in known
    assert made.uses.sum() == len(made.items)
    baskets, batch = made.held_out(300, random)
    assert len(set(baskets)) == 300 and batch.candidates.shape == (300, 100)
    ends = np.append(batch.starts[1:], len(batch.context))
    for k, basket in enumerate(baskets):
        context = set(batch.context[batch.starts[k]:ends[k]])
        assert batch.candidates[k, 0] == made.held[basket] not in context
        assert context == set(made.items[made.basket_of == basket])
        others = {made.names[i] for i in batch.candidates[k, 1:]}
        assert not others & names[made.baskets[basket].name]


def test_training_examples(made):
    batch = made.train(500, 4, np.random.default_rng(10))
    ends = np.append(batch.starts[1:], len(batch.context))
    held_as_stranger = 0
    for k in range(500):
        context = set(batch.context[batch.starts[k]:ends[k]])
        target, *others = batch.candidates[k]
        assert target not in context and not set(others) & {target, *context}
        fits = [b for b in range(len(made.baskets))
                if context | {target} == set(made.items[made.basket_of == b])]
        assert fits
        held_as_stranger += any(made.held[b] in others for b in fits)
    assert held_as_stranger, "training avoids what is held out, which tells what it is"
    assert batch.dense.dtype == np.float32 and abs(batch.dense.mean()) < 0.3


def test_parts_of_a_batch(made):
    whole = made.train(50, 2, np.random.default_rng(11))
    parts = [examples.part(whole, a, b) for a, b in ((0, 20), (20, 21), (21, 50))]
    for name in ("context", "section", "maintainer", "dense", "candidates"):
        assert np.array_equal(np.concatenate([getattr(p, name) for p in parts]),
                              getattr(whole, name))
    assert all(p.starts[0] == 0 for p in parts)
    assert np.array_equal(parts[2].starts + whole.starts[21], whole.starts[21:])


def test_scores_by_counting():
    random = np.random.default_rng(12)
    scores = random.integers(0, 40, (60, 100)).astype(np.float32)
    held, others = scores[:, 0], scores[:, 1:].reshape(-1)
    wins = sum(np.sum(h > others) + np.sum(h == others) / 2 for h in held)
    found = examples.judge(scores)
    assert found.auc == pytest.approx(wins / (60 * 60 * 99))
    hits = sum(sum(o >= row[0] for o in row[1:]) < 10 for row in scores)
    assert found.hit == pytest.approx(hits / 60)
    assert examples.judge(np.zeros((5, 100))) == (0, 0.5)
    best = np.zeros((5, 100))
    best[:, 0] = 1
    assert examples.judge(best) == (1, 1)


def test_too_little_data(run_demo, tmp_path):
    (tmp_path / "control").write_text(CONTROL)
    with pytest.raises(packages.NoDataError, match="only 0 packages"):
        examples.Examples(packages.parse_control(CONTROL), np.random.default_rng(1))
    done = run_demo("--source", tmp_path / "control")
    assert done.returncode == 2 and "there is no data: only 0 packages" in done.stderr


def test_bars():
    assert report.bars(["a", "long"], [1, 4]).splitlines() == [
        "  a    " + "#" * 10 + " " * 30 + " 1.000", "  long " + "#" * 40 + " 4.000"]


# -- the program


def test_it_learns_and_saves(tmp_path):
    torch = pytest.importorskip("torch")
    write_control(tmp_path / "control")
    done = start_demo("--source", tmp_path / "control", "--steps", 250, "--seed", 3, "--save",
                    tmp_path / "saved", "--plot", tmp_path / "plot.png")
    assert done.returncode == 0 and done.stdout.rstrip().endswith("learned")
    assert "seed 3\n" in done.stdout and "step   250 of 250" in done.stdout
    hit, popular_hit = numbers(done.stdout, "hit@10")
    auc, popular_auc = numbers(done.stdout, "AUC")
    assert hit > 0.6 > 0.4 > popular_hit
    assert auc > 0.9 > 0.7 > popular_auc
    if "there is no figure" not in done.stdout:
        assert (tmp_path / "plot.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    state = torch.load(tmp_path / "saved" / "model.pt", weights_only=True)
    names = json.loads((tmp_path / "saved" / "names.json").read_text())
    for table in ("known", "candidate", "section", "maintainer"):
        with checkpoint.open(tmp_path / "saved" / table) as saved:
            (name,) = saved.tables
            rows = saved.read(name)
            assert np.array_equal(rows, state[f"{table}.weight"].numpy())
            assert len(rows) == len(names[table])
            assert list(saved.slots(name)) == ["accumulators"] and saved.step == 250


def test_the_same_seed_is_the_same_run(run_demo, tmp_path):
    write_control(tmp_path / "control", baskets=300)
    runs = [run_demo("--source", tmp_path / "control", "--steps", 20, "--seed", seed)
            for seed in (5, 5, 6)]
    losses = [re.findall("loss ([0-9.]+)", done.stdout) for done in runs]
    assert len(losses[0]) == 20 and losses[0] == losses[1] != losses[2]


def test_options(run_demo, tmp_path):
    write_control(tmp_path / "control", baskets=300)
    done = run_demo("--source", tmp_path / "control", "--steps", 10**6, "--seconds", 0.5)
    assert 1 <= int(re.search(r"trained (\d+) steps of 256", done.stdout)[1]) < 10**5
    assert re.match(r"seed \d+\n", done.stdout)
    assert run_demo("--steps", "0").returncode == 2
    assert run_demo("--source", tmp_path / "none").returncode == 2


def test_real_packages(run_demo):
    """A short run on the machine's own package lists beats popularity clearly."""
    try:
        packages.read_source("apt")
    except packages.NoDataError as error:
        pytest.skip(str(error))
    done = run_demo("--source", "apt", "--steps", 150, "--seed", 7)
    assert done.returncode == 0
    hit, popular_hit = numbers(done.stdout, "hit@10")
    auc, popular_auc = numbers(done.stdout, "AUC")
    assert hit > 0.6 > 0.4 > popular_hit
    assert auc > 0.85 > 0.75 > popular_auc
