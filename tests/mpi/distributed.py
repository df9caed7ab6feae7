#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs over hosts: their bits, and their failures in every phase of a step, of a save and of a restore.

usage: distributed.py [--sample] BUILD [PART...]

    threads   every combination of optimizer, combiner, weights, pipelining and exchange over 1, 2, 3, 4 and 8
              hosts that are threads
    openmpi   the same over 2 to 6 ranks of Open MPI's mpirun; jobs that fail; and all conformance vectors
    mpich     the same with MPICH
    netns     jobs over hosts that are network namespaces, with Open MPI: they fail; links are slow, cut or flap

Without a PART, all of them; with --sample a few cases of openmpi or mpich. BUILD is a folder of meson's that was
built. Prints TAP. Processes, namespaces and files are removed at the end. Where no namespace can be made, that
part is skipped, and says why.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import netns

DEADLINE = 3  # seconds that an exchange may take
FLAP_DEADLINE = 20
SLACK = 1.1  # seconds that all hosts may take longer, and rounding
STEPS, HALF_WAY = 8, 4
RANKS = 4  # ranks of a job that fails; rank 2 does
CULPRIT = 2
MOST = 90  # seconds of a launcher
PHASES = ["ids", "activations", "gradients", "save", "save:2", "save:3", "restore", "restore:2"]
FAULTS = ["kill", "exit", "stop", "skip", "slow"]
SAMPLE = 11  # combinations of which a sample has one
APART = str(pathlib.Path(__file__).resolve().parent / "apart.sh")
PARTS = ["threads", "openmpi", "mpich", "netns"]


class Report:
    """Cases as TAP."""

    def __init__(self):
        self.number = self.failed = 0

    def case(self, name, wrong):
        """@wrong: sentences that say what was wrong; none: the case has passed."""
        self.number += 1
        self.failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {self.number} - {name}")
        for line in wrong:
            print("# " + line.replace("\n", "\n# "))
        sys.stdout.flush()

    def skip(self, name, why):
        self.number += 1
        print(f"ok {self.number} - {name} # SKIP namespaces: none can be made: {why}", flush=True)


class Launcher:
    """Starts programs over ranks by one MPI, on this machine or on @hosts."""

    def __init__(self, build, mpi, hosts=None):
        self.mpi, self.hosts = mpi, hosts
        self.programs = build / "tests" / "mpi"
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "runtime" / "mpi"),
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def words(self, ranks, survive):
        if self.mpi == "mpich":
            return ["mpirun.mpich", *(["-disable-auto-cleanup"] if survive else []), "-n", str(ranks)]
        words = ["mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
                 *(["--continuous"] if survive else []), "-n", str(ranks)]
        if self.hosts:
            names = ",".join(name + ":1" for name in self.hosts.names[:ranks])
            words = ["ip", "netns", "exec", self.hosts.names[0], "unshare", "-u", "sh", "-c",
                     f"hostname {self.hosts.names[0]}; exec \"$@\"", "sh", *words, "--host", names, "--mca",
                     "plm_rsh_agent", str(self.hosts.agent), "--mca", "btl", "tcp,self"]
            for of in "btl_tcp", "oob_tcp":
                words += ["--mca", f"{of}_if_include", netns.INTERFACE]
        return words

    def run(self, ranks, program, *arguments, survive=False, most=MOST):
        """The exit code, and the output of each rank and of the launcher, none within another's. All that hangs is
        killed; then the code is None."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            command = [*self.words(ranks, survive), APART, folder + "/rank", str(self.programs / program),
                       *map(str, arguments)]
            code, output = self.end_in_time(command, most)
            ranks_said = [path.read_text(encoding="utf-8", errors="replace")
                          for path in sorted(pathlib.Path(folder).iterdir())]
            return code, "".join([*ranks_said, output])

    def end_in_time(self, command, most):
        """The exit code of a launcher, or None if it was killed, and what it said itself."""
        with subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=most)
                return process.returncode, output
            except subprocess.TimeoutExpired:
                return None, self.end(process)

    def end(self, process):
        """Ends a launcher that hangs, first so that it can end its ranks. Returns its output."""
        for number in signal.SIGTERM, signal.SIGKILL:
            os.killpg(process.pid, number)
            if self.hosts:
                self.hosts.end_processes()
            try:
                return process.communicate(timeout=5)[0]
            except subprocess.TimeoutExpired:
                pass
        return "the launcher left processes behind that keep its output open"


class Job:
    """A job with its folder, which is started again and again."""

    def __init__(self, launcher, scratch, device, checkpoints=True):
        self.launcher, self.device = launcher, device
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        self.folder = self.scratch / "checkpoint" if checkpoints else "-"
        self.started = 0

    def start(self, ranks, steps, fault=(), deadline=DEADLINE, survive=False, most=MOST):
        """The launcher's exit code, what the ranks said, and what was printed."""
        self.started += 1
        said = self.scratch / f"said{self.started}"
        code, output = self.launcher.run(ranks, "mpi_job", self.launcher.mpi, self.device, deadline, steps, self.folder,
                                         said, *fault, survive=survive, most=most)
        return code, said.read_text(encoding="utf-8").splitlines() if said.exists() else [], output

    def alone(self, steps):
        said = self.scratch / "alone"
        subprocess.run([self.launcher.programs / "mpi_job", "alone", "soft:cores=1", str(DEADLINE), str(steps), "-",
                        said], check=True, timeout=MOST)
        return said.read_text(encoding="utf-8").split(" on ", maxsplit=1)[0]


def expected_place(phase):
    """The step and the phase that a failure names, as an expression; a job that failed began at half way."""
    name = phase.split(":", maxsplit=1)[0]
    return {"save": r"step \d+, save", "restore": r"step 0, restore",
            # A program may enqueue the next step while gradients are on their way.
            "gradients": r"step (2, gradients|3, ids)",
            # The last of the step before may still have been on their way, too.
            "ids": r"step (2, ids|1, gradients)"}.get(name, f"step 2, {name}")


def check_survivors(said, ranks, expression, dead=(CULPRIT,)):
    """All ranks but the dead ones say the same sentence in time. Returns what is wrong."""
    form = re.compile(r"rank (\d+) of (\d+): (-\d+) after ([\d.]+) s: (.*)")
    told = {int(m[1]): m for m in map(form.fullmatch, said) if m}
    wrong = [f"rank {rank} said nothing" for rank in range(ranks) if rank not in dead and rank not in told]
    mine = [m for rank, m in told.items() if rank not in dead]
    wrong += [] if mine else ["no rank said anything"]
    wrong += [f"they do not say the same: {m[0]}" for m in mine if (m[3], m[5]) != (mine[0][3], mine[0][5])]
    wrong += [f"this does not match {expression}: {m[0]}" for m in mine if not re.search(expression, f"{m[3]} {m[5]}")]
    wrong += [f"too late: {m[0]}" for m in mine if float(m[4]) > DEADLINE + SLACK]
    return wrong


def ended_by_mpi(said, ranks, output):
    """Ranks that Open MPI ended, since they were sending over TCP to one that was killed."""
    if "mca_btl_tcp_frag_send: writev failed" not in output:
        return ()
    return tuple(rank for rank in range(ranks) if not any(line.startswith(f"rank {rank} of") for line in said))


def check_rows(said, job, ranks):
    """The job ended with the bits of one process that never stopped."""
    expected = f"{job.alone(STEPS)} on {ranks} hosts"
    return [] if said == [expected] else [f"expected '{expected}', but the job said {said}"]


class Faults:
    """Jobs of RANKS ranks that fail in a phase, on one launcher."""

    def __init__(self, report, launcher, scratch, title):
        self.report, self.launcher, self.scratch, self.title = report, launcher, scratch, title
        self.turn = 0

    def next_device(self):
        self.turn += 1
        return "soft:cores=1,exchange=" + ["table", "columns"][self.turn % 2]

    def left_over(self):
        if self.launcher.hosts and self.launcher.hosts.end_processes(grace=12):
            return ["processes were left on the hosts"]
        return []

    def expected(self, kind, phase):
        place = expected_place(phase)
        if kind == "skip":
            return rf"-71 .*{place}.*host {CULPRIT} \(\S+\) is at step|-71 .*is at step \d+, .*host {CULPRIT}"
        silent = f"(host|hosts [0-9, ]*) ?{CULPRIT}( |$)"
        return rf"-(62|112) .*{place}: .*{silent}"

    def fail_once(self, job, kind, phase):
        """A job whose rank CULPRIT fails in a phase. Returns what is wrong."""
        step = 2 if phase in ("ids", "activations", "gradients") else 0
        killed = kind in ("kill", "exit")
        code, said, output = job.start(RANKS, STEPS, (kind, CULPRIT, step, phase), survive=killed)
        if code is None:
            return ["the launcher hung", *said, output]
        if kind == "slow":
            return check_rows(said, job, RANKS) + ([f"exit code {code}", output] if code else [])
        # "mpirun --continuous" of Open MPI ends with 0 in any case, and MPICH's may if the rank itself did.
        hidden = kind == "exit" or (killed and self.launcher.mpi == "openmpi")
        wrong = [] if code or hidden else ["the launcher's exit code is 0, as if the job had not failed"]
        # MPICH's mpirun ends all ranks when one dies, often before they can say anything.
        if killed and self.launcher.mpi == "mpich":
            return wrong + [f"this is no failure: {line}" for line in said if line.startswith("rows ")]
        dead = () if kind == "skip" else (CULPRIT, *(ended_by_mpi(said, RANKS, output) if killed else ()))
        wrong += check_survivors(said, RANKS, self.expected(kind, phase), dead)
        return wrong + ([output] if wrong else [])

    def one(self, kind, phase):
        job = Job(self.launcher, self.scratch, self.next_device())
        code, said, output = job.start(RANKS, HALF_WAY)
        wrong = [output] if code or not said else []
        wrong += self.fail_once(job, kind, phase) + self.left_over()
        self.report.case(f"{self.title}: {kind} in {phase}, {RANKS} hosts", wrong)
        if kind == "slow":
            return
        again = [2, 3, 1, 4][self.turn % 4]
        code, said, output = job.start(again, STEPS)
        wrong = check_rows(said, job, again) + ([f"exit code {code}", output] if code else [])
        self.report.case(f"{self.title}: after {kind} in {phase}, {again} take it up with the bits of one", wrong)
        shutil.rmtree(job.scratch)

    def spread_rows(self, kind, phase):
        """Rows that are spread have no checkpoints yet: such a job begins anew."""
        job = Job(self.launcher, self.scratch, "soft:cores=1,exchange=rows", checkpoints=False)
        fault = (kind, CULPRIT, 2, phase)
        code, said, output = job.start(RANKS, STEPS, fault, survive=kind == "kill")
        if kind == "kill" and self.launcher.mpi == "mpich":
            wrong = [] if code else ["the launcher's exit code is 0"]
        else:
            dead = (CULPRIT, *(ended_by_mpi(said, RANKS, output) if kind == "kill" else ()))
            wrong = check_survivors(said, RANKS, self.expected(kind, phase), dead)
        self.report.case(f"{self.title}: spread rows, {kind} in {phase}", wrong + ([output] if wrong else []))
        code, said, output = job.start(3, STEPS)
        wrong = check_rows(said, job, 3)
        self.report.case(f"{self.title}: spread rows, begun anew", wrong + ([output] if wrong else []))

    def all(self, kinds=tuple(FAULTS), phases=tuple(PHASES)):
        for kind in kinds:
            for phase in phases:
                self.one(kind, phase)
        for phase in "ids", "activations", "gradients":
            self.spread_rows("kill" if phase == "ids" else "stop", phase)


def check_matrix(report, title, run, ranks, every=1):
    """@run: gives the exit code and the output of the program matrix over ranks."""
    code, output = run(ranks, every)
    form = re.compile(rf"^rank \d+ of {ranks}: (\d+) combinations, (\d+) numbers are those of one process$", re.M)
    found = form.findall(output)
    _, single = run(1, every)
    alone = re.search(r"rank 0 of 1: (\d+) combinations, (\d+) numbers are", single)
    wrong = []
    if code or len(found) != ranks or not alone:
        wrong = [f"exit code {code}, {len(found)} ranks passed", output, single]
    elif any(made != alone[1] for made, _ in found) or sum(int(n) for _, n in found) != int(alone[2]):
        wrong = [f"the ranks have {found}, and one process {alone.groups()}"]
    report.case(f"{title}: {alone[1] if alone else 'all'} combinations over {ranks} hosts have the bits of one process",
                wrong)


def run_threads(build, report, _scratch):
    def run(ranks, every):
        done = subprocess.run([build / "tests" / "mpi" / "mpi_matrix", f"threads:{ranks}", str(every)], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        return done.returncode, done.stdout

    for ranks in 1, 2, 3, 4, 8:
        check_matrix(report, "threads", run, ranks)


def check_vectors(report, build, mpi):
    """All conformance vectors; conform.sh has cases of its own."""
    here = pathlib.Path(__file__).resolve().parent
    done = subprocess.run([here / "conform.sh", build / "runtime" / "embeng", mpi,
                           here.parent / "vectors"], check=False, stdout=subprocess.PIPE, text=True, timeout=1800)
    wrong = [done.stdout] if done.returncode else []
    report.case(f"{mpi}: all conformance vectors over 2 and 3 hosts, and exit codes", wrong)


def run_mpi(build, report, scratch, mpi):
    launcher = Launcher(build, mpi)

    def run(ranks, every):
        return launcher.run(ranks, "mpi_matrix", mpi, every, most=600)

    for ranks in range(2, 7):
        check_matrix(report, mpi, run, ranks)
    check_vectors(report, build, mpi)
    Faults(report, launcher, scratch, mpi).all()


def run_sample(build, report, scratch, mpi):
    launcher = Launcher(build, mpi)
    faults = Faults(report, launcher, scratch, mpi)

    def run(ranks, every):
        return launcher.run(ranks, "mpi_matrix", mpi, every)

    check_matrix(report, mpi, run, 3, SAMPLE)
    for kind, phase in ("kill", "activations"), ("skip", "gradients"), ("slow", "ids"), ("kill", "save:2"):
        faults.one(kind, phase)


def check_bits(report, launcher, scratch, title, ranks, fault=(), device="soft:cores=1", checkpoints=True):
    job = Job(launcher, scratch, device, checkpoints)
    code, said, output = job.start(ranks, STEPS, fault, deadline=FLAP_DEADLINE)
    wrong = check_rows(said, job, ranks) + ([f"exit code {code}"] if code else [])
    report.case(f"netns: {title}, {ranks} hosts have the bits of one process", wrong + ([output] if wrong else []))


def cut_link(report, launcher, scratch, phase):
    """All but the host whose link is cut name it alone; it names those that it waits for."""
    hosts = launcher.hosts
    job = Job(launcher, scratch, "soft:cores=1")
    job.start(RANKS, HALF_WAY)
    fault = ("run", CULPRIT, 2 if phase in ("ids", "activations", "gradients") else 0, phase, hosts.cut(CULPRIT))
    # The launcher may hang when a host is lost, and is ended then.
    _, said, output = job.start(RANKS, STEPS, fault, survive=True, most=20)
    wrong = check_survivors(said, RANKS, rf"-62 {expected_place(phase)}: host {CULPRIT} \({hosts.names[CULPRIT]}\)")
    # Messages that were on their way may have come: then it names those of which nothing did.
    own = [line for line in said if line.startswith(f"rank {CULPRIT} of")]
    if not own or not re.search(r": -62 .*: hosts? ([013], )*[013] .*(sent nothing|did not finish)", own[0]):
        wrong.append(f"the host that was cut off must name others, but said {own}")
    hosts.end_processes()
    hosts.mend()
    report.case(f"netns: the link of a host is cut in {phase}", wrong + ([output, *said] if wrong else []))
    _, said, output = job.start(3, STEPS)
    wrong = check_rows(said, job, 3)
    report.case(f"netns: after a cut link in {phase}, 3 hosts go on with the bits of one",
                wrong + ([output] if wrong else []))


def run_netns(build, report, scratch):
    try:
        hosts = netns.Hosts(6)
    except OSError as error:
        report.skip("hosts as network namespaces", str(error))
        return
    try:
        launcher = Launcher(build, "openmpi", hosts)
        for exchange in "table", "columns":
            check_bits(report, launcher, scratch, exchange, 6, device=f"soft:cores=1,exchange={exchange}")
        check_bits(report, launcher, scratch, "rows", 4, device="soft:cores=1,exchange=rows", checkpoints=False)
        for rate in "10mbit", "1mbit":
            hosts.slow(rate)
            check_bits(report, launcher, scratch, f"links of {rate}", RANKS)
        hosts.slow(None)
        for phase in "ids", "activations", "gradients", "save":
            check_bits(report, launcher, scratch, f"a link that flaps for 2 s in {phase}", RANKS,
                       ("run", CULPRIT, 0, phase, hosts.flap(CULPRIT, 2)))
            hosts.mend()
            cut_link(report, launcher, scratch, phase)
        Faults(report, launcher, scratch, "netns").all()
    finally:
        hosts.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sample", action="store_true", help="a few cases of the MPIs that are named")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + "; without one, all")
    given = parser.parse_args()
    run = {"threads": run_threads, "netns": run_netns,
           "openmpi": lambda *of: run_mpi(*of, "openmpi"), "mpich": lambda *of: run_mpi(*of, "mpich")}
    if given.sample:
        run = {mpi: lambda *of, mpi=mpi: run_sample(*of, mpi) for mpi in ("openmpi", "mpich")}
    for part in given.parts:
        if part not in run:
            parser.error(f"there is no part '{part}'; there are {', '.join(run)}")
    report = Report()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="embeng-distributed-"))
    try:
        for part in given.parts or run:
            began = time.monotonic()
            run[part](given.build.resolve(), report, scratch)
            print(f"# {part}: {time.monotonic() - began:.0f} s", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"1..{report.number}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
