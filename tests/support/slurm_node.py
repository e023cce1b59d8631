"""A Slurm cluster of one node on this machine, real but for its size, for as long as a test needs it."""

import getpass
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")

# The node claims more than the machine has, so that requests for real data can be met, and two GPUs that are none: jobs that
# get one find no CUDA.
CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
MinJobAge=86400
JobCompType=jobcomp/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=100000 Gres=gpu:2 State=UNKNOWN
PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why there can be no cluster here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: apt-get install slurm-wlm munge)"
    return None if os.geteuid() == 0 else "slurmd wants to be root"


@dataclass(frozen=True)
class Job:
    """A job that was submitted, as the controller remembers it."""

    number: int
    rule: str  # with the wildcards: rule_<name>_wildcards_<values>
    state: str
    cpus: int
    memory: int  # MB
    minutes: int
    gpus: int
    restarts: int


@dataclass
class Cluster:
    """The running daemons; commands find them by `environment`."""

    folder: Path
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def said(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | self.environment()
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)

    def command(self, *arguments: str) -> str:
        run = self.said(*arguments)
        assert run.returncode == 0, (arguments, run.stderr)
        return run.stdout

    def jobs(self) -> list[Job]:
        """All jobs that were ever submitted."""
        text = self.command("scontrol", "show", "job", "--oneliner")
        return [_job(line) for line in text.splitlines() if line.startswith("JobId=")]

    def last(self, rule: str) -> Job | None:
        """The latest job of a rule and its wildcards."""
        found = [job for job in self.jobs() if job.rule == rule]
        return max(found, key=lambda job: job.number) if found else None

    def processes(self, job: Job) -> list[int]:
        """Of all steps of a running job."""
        return [int(line.split()[0]) for line in self.command("scontrol", "listpids", str(job.number)).splitlines()[1:]]

    def start(self, *command: str) -> None:
        output = (self.folder / f"{Path(command[0]).name}.out").open("wb")
        environment = os.environ | self.environment()
        self.daemons.append(
            subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        )


def _job(line: str) -> Job:
    def value(pattern: str, otherwise: str) -> str:
        found = re.search(pattern, line)
        return found[1] if found else otherwise

    days, hours, minutes = re.search(r"TimeLimit=(?:(\d+)-)?(\d+):(\d+):", line).groups()  # type: ignore[union-attr]
    return Job(
        number=int(value(r"JobId=(\d+)", "")),
        rule=value(r"Comment=(\S+)", ""),
        state=value(r"JobState=(\w+)", ""),
        cpus=int(value(r"NumCPUs=(\d+)", "0")),
        memory=int(value(r"MinMemoryNode=(\d+)M", "0")),
        minutes=int(days or 0) * 1440 + int(hours) * 60 + int(minutes),
        gpus=int(value(r"TresPerJob=\S*gpu:(\d+)", "0")),
        restarts=int(value(r"Restarts=(\d+)", "0")),
    )


@contextmanager
def cluster(folder: Path, cpus: int) -> Iterator[Cluster]:
    """Start the daemons with a configuration of their own, and stop them and what they run at the end.

    Args:
        folder: an empty one, with a path short enough for a socket.
        cpus: that the node claims to have.
    """
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        ports = first.getsockname()[1], second.getsockname()[1]
    host = socket.gethostname().split(".")[0]
    text = CONFIGURATION.format(host=host, ports=ports, user=getpass.getuser(), folder=folder, cpus=cpus)
    (folder / "slurm.conf").write_text(text)
    for number in (0, 1):
        (folder / f"gpu{number}").touch()
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-1]\n")
    # Snakemake's job step forgets SLURM_CONF; on a cluster the configuration is where srun looks anyway.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    running = Cluster(folder)
    try:
        files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "seed", "log")]
        running.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files)
        _wait(lambda: (folder / "munge.socket").exists(), running)
        running.start("slurmctld", "-D", "-c")
        running.start("slurmd", "-D", "-N", host)
        _wait(lambda: "idle" in running.said("sinfo", "--noheader", "--format=%T").stdout, running)
        yield running
    finally:
        if len(running.daemons) == 3:
            running.said("scancel", f"--user={getpass.getuser()}")
            time.sleep(1)
        for daemon in reversed(running.daemons):
            daemon.terminate()
            daemon.wait(30)


def _wait(condition: Callable[[], bool], running: Cluster) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        said = "\n".join(path.read_text(errors="replace")[-2000:] for path in running.folder.glob("*.out"))
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
