"""A Slurm cluster on this machine for as long as a test needs it: two nodes, and GPUs that are none."""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
CPU_NODE, GPU_NODE = "cpu-node", "gpu-node"
FIELDS = {
    "number": "JobID",
    "rule": "Comment",  # with the wildcards: rule_<name>_wildcards_<values>
    "state": "State",
    "memory": "MinMemory",  # asked for, such as 4000M
    "limit": "TimeLimit",  # of its time, such as 30:00
    "gpus": "tres-per-job",  # asked for
    "node": "NodeList",
    "restarts": "RestartCnt",
    "begin": "StartTime",  # of the last start
    "end": "EndTime",
}
"""What squeue tells of a job, by attribute of a `Job`."""
Job = namedtuple("Job", FIELDS)

# Both nodes are this machine, at different ports. They claim more than it has, so that requests for real data can be met. A job
# that gets a GPU finds no CUDA. A credential lives 20 s because a job that goes back into the queue waits for so long.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=20
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
MinJobAge=100000
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=15
JobCompType=jobcomp/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs={cpus} RealMemory=100000 State=UNKNOWN
NodeName={cpu_node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]}
NodeName={gpu_node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} Gres=gpu:{gpus}
PartitionName=long Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Return why there can be no cluster here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: apt-get install slurm-wlm munge)"
    return None if os.geteuid() == 0 else "slurmd wants to be root"


@dataclass
class Cluster:
    """The running daemons; commands find them by `environment`."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

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
        """Return all jobs that were ever submitted, by number."""
        columns = ",".join(f"{name}:|" for name in FIELDS.values())
        options = ["--states=all", "--sort=i", "--noheader", f"--Format={columns}"]
        return [Job(*line.split("|")[:-1]) for line in self.command("squeue", *options).splitlines()]

    def of(self, rule: str) -> list[Job]:
        """Return the jobs of a rule and its wildcards, by number."""
        return [job for job in self.jobs() if job.rule == rule]

    def processes(self, job: Job) -> list[int]:
        """Return the processes of all steps of a running job."""
        said = self.command("scontrol", "listpids", job.number, job.node)
        return [int(line.split()[0]) for line in said.splitlines()[1:]]

    def kill(self, node: str) -> None:
        """Let a node lose its power: its daemon and all that jobs run there get SIGKILL."""
        running = [job for job in self.jobs() if (job.state, job.node) == ("RUNNING", node)]
        processes = [psutil.Process(pid) for job in running for pid in self.processes(job)]
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait(30)
        # Those that watch the steps go before the steps, or they would report that the job failed.
        parents = {process.parent() for process in processes} - {None}
        for process in [*(one for one in parents if one.name().startswith("slurmstepd")), *processes]:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def power_on(self, node: str) -> None:
        """Start the daemon of a node, and wait until the node takes jobs."""
        self.start(node, "slurmd", "-D", "-N", node)
        self.wait(lambda: self.state(node) in {"idle", "mixed", "allocated"})

    def state(self, node: str) -> str:
        return self.said("sinfo", "--noheader", "--format=%T", f"--nodes={node}", "--partition=long").stdout.strip()

    def start(self, name: str, *command: str) -> None:
        environment = os.environ | self.environment()
        with (self.folder / f"{name}.out").open("ab") as output:
            self.daemons[name] = subprocess.Popen(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait(self, condition: Callable[[], object], seconds: float = 60) -> None:
        """Wait until a condition holds; say what the daemons said after so many seconds in vain."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.messages()
            time.sleep(0.2)

    def messages(self) -> str:
        """Return the last lines of each daemon."""
        logs = [*self.folder.glob("*.out"), *self.folder.glob("*.log")]
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in logs)


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def cluster(folder: Path, cpus: int, gpus: int) -> Iterator[Cluster]:
    """Start the daemons with a configuration of their own, and stop them and what they run at the end.

    Args:
        folder: an empty one, with a path short enough for a socket.
        cpus: that each node claims to have.
        gpus: that the second node claims to have.
    """
    for name in ("state", CPU_NODE, GPU_NODE, "bin"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    values = {
        "host": socket.gethostname().split(".")[0], "ports": _free_ports(3), "user": getpass.getuser(), "folder": folder,
        "cpus": cpus, "gpus": gpus, "cpu_node": CPU_NODE, "gpu_node": GPU_NODE,
    }  # fmt: skip
    (folder / "slurm.conf").write_text(CONFIGURATION.format_map(values))
    devices = [folder / f"gpu{number}" for number in range(gpus)]
    for device in devices:
        device.touch()
    lines = [f"NodeName={GPU_NODE} Name=gpu File={device}\n" for device in devices]
    (folder / "gres.conf").write_text("".join(lines))
    # Snakemake's job step forgets SLURM_CONF; on a cluster the configuration is where srun looks anyway.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    running = Cluster(folder)
    try:
        _start(running)
        yield running
    finally:
        if CPU_NODE in running.daemons:
            running.said("scancel", f"--user={getpass.getuser()}")
            time.sleep(1)
        for daemon in reversed(running.daemons.values()):
            daemon.terminate()
            daemon.wait(60)
        # Without control groups Slurm loses a process whose parent has ended.
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("SLURM_CONF") == f"{folder}/slurm.conf":
                with suppress(psutil.NoSuchProcess):
                    process.kill()


def _start(running: Cluster) -> None:
    folder = running.folder
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "seed", "log")]
    running.start("munged", "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files)
    running.wait((folder / "munge.socket").exists)
    running.start("slurmctld", "slurmctld", "-D", "-c")
    for node in (CPU_NODE, GPU_NODE):
        running.power_on(node)
