"""A Slurm cluster on this machine for as long as a test needs it: accounting, two nodes, and GPUs that are none."""

import getpass
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch", "srun", "squeue")
PROGRAMS += ("sacct", "sacctmgr", "scontrol", "scancel")
CPU_NODE, GPU_NODE = "cpu-node", "gpu-node"
ACCOUNT = "replication"

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
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[1]}
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
AccountingStorageEnforce=associations
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
NodeName={cpu_node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]}
NodeName={gpu_node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} Gres=gpu:{gpus}
PartitionName=long Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
ACCOUNTING = """
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports[1]}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=accounting
"""


def missing() -> str | None:
    """Return why there can be no cluster here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: apt-get install slurm-wlm slurmdbd munge mariadb-server)"
    return None if os.geteuid() == 0 else "slurmd wants to be root"


@dataclass(frozen=True)
class Job:
    """A job as the accounting remembers it."""

    number: int
    rule: str  # with the wildcards: rule_<name>_wildcards_<values>
    state: str
    memory: int  # MB, asked for
    minutes: int  # asked for
    gpus: int  # got
    node: str
    restarts: int
    elapsed: int  # seconds of the last start


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
        # The accounting hears of the rule only when a job ends.
        queue = self.command("squeue", "--states=all", "--noheader", "--format=%i|%k").splitlines()
        rules = dict(line.split("|", 1) for line in queue)
        fields = "JobIDRaw,Comment,State,ReqMem,TimelimitRaw,AllocTRES,NodeList,ElapsedRaw"
        options = ["--allusers", "--starttime=now-1days", "--noheader", "--parsable2", "--units=M", "--allocations"]
        lines = [line.split("|") for line in self.command("sacct", *options, f"--format={fields}").splitlines()]
        # A start that a requeue ended is a duplicate: its number occurs again.
        every = self.command("sacct", *options, "--duplicates", "--format=JobIDRaw").split()
        return [_job(line, rules.get(line[0], ""), every.count(line[0]) - 1) for line in lines]

    def last(self, rule: str) -> Job | None:
        """Return the latest job of a rule and its wildcards."""
        return max((job for job in self.jobs() if job.rule == rule), key=lambda job: job.number, default=None)

    def processes(self, job: Job) -> list[int]:
        """Return the processes of all steps of a running job."""
        said = self.command("scontrol", "listpids", str(job.number), job.node)
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
        environment = os.environ | self.environment() | {"MYSQL_UNIX_PORT": f"{self.folder}/database.socket"}
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


def _job(line: list[str], rule: str, restarts: int) -> Job:
    number, comment, state, memory, minutes, tres, node, elapsed = line
    gpus = re.search(r"gres/gpu=(\d+)", tres)
    return Job(
        number=int(number), rule=comment or rule, state=state.split()[0], memory=round(float(memory.rstrip("M"))),
        minutes=int(minutes) if minutes.isdigit() else 0, gpus=int(gpus[1]) if gpus else 0, node=node, restarts=restarts,
        elapsed=int(elapsed),
    )  # fmt: skip


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
        "host": socket.gethostname().split(".")[0], "ports": _free_ports(4), "user": getpass.getuser(), "folder": folder,
        "cpus": cpus, "gpus": gpus, "cpu_node": CPU_NODE, "gpu_node": GPU_NODE,
    }  # fmt: skip
    (folder / "slurm.conf").write_text(CONFIGURATION.format_map(values))
    (folder / "slurmdbd.conf").write_text(ACCOUNTING.format_map(values))
    (folder / "slurmdbd.conf").chmod(0o600)
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
    # Nobody but this user reaches the database: its folder is private, and it listens at no port.
    data = folder / "database"
    data.mkdir(mode=0o700)
    own = ["--no-defaults", f"--user={getpass.getuser()}", f"--datadir={data}"]
    running.command("mariadb-install-db", *own, "--skip-test-db", "--auth-root-authentication-method=normal")
    database = folder / "database.socket"
    running.start("mariadbd", "mariadbd", *own, f"--socket={database}", f"--pid-file={data}/pid", "--skip-networking")
    running.wait(lambda: (folder / "munge.socket").exists() and database.exists())
    running.start("slurmdbd", "slurmdbd", "-D")
    running.wait(lambda: running.said("sacctmgr", "--noheader", "list", "cluster").returncode == 0)
    running.command("sacctmgr", "--immediate", "add", "cluster", "test")
    running.command("sacctmgr", "--immediate", "add", "account", ACCOUNT, "cluster=test")
    # Slurm knows root already, with an account of that name.
    user = getpass.getuser()
    running.command("sacctmgr", "--immediate", "add", "user", user, f"account={ACCOUNT}", "cluster=test")
    running.command("sacctmgr", "--immediate", "modify", "user", user, "set", f"defaultaccount={ACCOUNT}")
    running.start("slurmctld", "slurmctld", "-D", "-c")
    for node in (CPU_NODE, GPU_NODE):
        running.power_on(node)
