"""The miniature pipeline as jobs of a real Slurm with accounting and two nodes: through the profile as it stands, cancelled,
timed out, preempted, and on a node that dies, to the same bytes."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from snakemake.profiles import ProfileConfigFileParser

from replication.runs.outputs import evidence_files
from replication.runs.settings import load_settings
from support.copies import REPOSITORY, Tree, copy_of_repository, repeatable
from support.slurm_cluster import ACCOUNT, CPU_NODE, GPU_NODE, SHORT_MINUTES, Cluster, Job, cluster, missing

pytestmark = pytest.mark.slow

PROFILE = REPOSITORY / "profiles" / "slurm" / "config.yaml"
CANCELLED, TIMED_OUT, PREEMPTED = "cifar10/clai-m/seed0", "cifar10/clai-m/seed1", "cifar10/cross-entropy/seed0"
STOPPED, ORPHANED = "cifar10/clai-c/seed1", "cifar10/clai-c/seed0"
HURRIED = PREEMPTED  # once more, when the rest is done
# Nothing of the profile is changed but how long Snakemake waits between questions: here is no queue to wait in.
HERE = ["--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "3"]
STARTS_SECONDS, SNAKEMAKE_MB = 180, 400  # of a job beyond its record; docs/cluster.md has what was measured
SUBMITTED = os.environ.get("CLAI_SLURM", "")
"""What of the miniature pipeline is submitted: the `models` that accidents befall, a `part`, or the `whole`. Each job imports
everything anew, which takes minutes."""
EVIDENCE, DRAWN = ("cifar10", "challenge2019"), ("figure1.png",)
"""The part: the evidence of a dataset of images and of one of stays, and a figure."""
RULES = [REPOSITORY / "Snakefile", *sorted((REPOSITORY / "workflow" / "rules").glob("*.smk"))]


def rules_on_a_gpu() -> set[str]:
    """Return the rules whose resources have a GPU, and those that take their resources from one of these."""
    parts = [part for file in RULES for part in re.split(r"^(?=(?:use )?rule )", file.read_text(), flags=re.MULTILINE)]
    own = {part.split()[1].rstrip(":") for part in parts if part.startswith("rule ") and re.search(r"\bgpu=1\b", part)}
    heads = [(re.match(r"use rule (\w+) as (\w+)", part), part) for part in parts]
    return own | {head[2] for head, part in heads if head and head[1] in own and "resources:" not in part}


ON_A_GPU = sorted(rules_on_a_gpu())
REQUESTED = {  # MB, minutes, GPUs of a first attempt
    "train_model": (8000, 240, 1),
    "evaluate_clai": (16000, 60, 1),
    "evaluate_cross_entropy": (8000, 30, 1),
    "evaluate_supervised_contrastive": (8000, 30, 1),
    "prepare_dataset": (12000, 120, 0),
    "run_cell": (8000, 240, 1),
    "run_predicted_cell": (8000, 240, 1),
    "train_traced": (8000, 240, 1),
    "fit_read_outs": (16000, 120, 1),
    "compare_classes": (8000, 30, 1),
    "describe_signals": (8000, 30, 1),
    "fit_deep_kernel_gp": (8000, 240, 1),
    "fit_hourly_classifiers": (16000, 120, 0),
    "fit_feature_classifiers": (8000, 60, 0),
    "fit_embedding_baseline": (8000, 60, 0),
    "project_embeddings": (8000, 60, 0),
    "summarise_dataset": (4000, 30, 0),
}


def parsed(
    listed: str | None, block: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[str]]:
    """Return what Snakemake reads from the profile with a block "Your cluster", where `sinfo` lists some partitions."""
    if listed is not None:
        (folder / "listed").write_text(f"{listed}\n")
        (folder / "sinfo").write_text(f"#!/bin/sh\n/bin/cat {folder}/listed\n")
        (folder / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    text = PROFILE.read_text()
    for name, value in block.items():
        text, count = re.subn(rf"^  {name}: null", f"  {name}: {value}", text, flags=re.MULTILINE)
        assert count == 1
    (folder / "config.yaml").write_text(text)
    with (folder / "config.yaml").open() as stream:
        return dict(ProfileConfigFileParser().parse(stream))


@pytest.mark.parametrize(
    ("listed", "partition", "gpus"),
    [
        ("work* infinite (null)", "null", 0),
        ("work* infinite (null)\nwork* infinite gpu:a100:4(S:0-1)", "null", 1),
        ("work* infinite (null)\nfast 1:00:00 gpu:a100:4(S:0-1)", "null", 0),
        ("work* infinite (null)\nfast 1:00:00 gpu:a100:4(S:0-1)", "fast", 1),
        ("work* infinite gpu:a100:4(S:0-1)\nfast 1:00:00 (null)", "fast", 0),
        (None, "null", 0),
    ],
)
def test_gpu_is_asked_for_where_its_partition_has_one(
    listed: str | None, partition: str, gpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = parsed(listed, {"gpu_partition": partition}, tmp_path, monkeypatch)["set-resources"]
    assert sorted(line for line in asked if ":gpu=" in line) == [f"{rule}:gpu={gpus}" for rule in ON_A_GPU]


def test_names_of_a_cluster_are_set_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = {"partition": "cpu", "account": "a1", "gpu_partition": "fast", "gpu_model": "a100"}
    profile = parsed("cpu* infinite (null)\nfast infinite gpu:a100:4", block, tmp_path, monkeypatch)
    assert {"slurm_partition=cpu", "slurm_account=a1"} <= set(profile["default-resources"])
    for rule in ON_A_GPU:
        assert {f"{rule}:slurm_partition=fast", f"{rule}:gpu_model=a100", f"{rule}:gpu=1"} <= set(
            profile["set-resources"]
        )


def test_no_rule_asks_for_more_time_than_its_partition_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "cpu* 10:00:00 (null)\nfast 2:00:00 gpu:1"
    profile = parsed(listed, {"gpu_partition": "fast"}, tmp_path, monkeypatch)
    asked = dict(line.split("=", 1) for line in profile["set-resources"] if ":runtime=" in line)
    for rule in ON_A_GPU:
        assert asked.pop(f"{rule}:runtime").endswith(" * attempt, 120)")
    (others,) = [line for line in profile["default-resources"] if line.startswith("runtime=")]
    assert all(one.endswith(" * attempt, 600)") for one in [others, *asked.values()])


@dataclass
class Submitted:
    """A tree in which the pipeline ran on the cluster, and what was seen of it."""

    tree: Tree
    cluster: Cluster
    planned: dict[str, int]
    jobs: list[Job]

    def attempts(self, run: str) -> list[Job]:
        return sorted((job for job in self.jobs if job.rule == rule_of(run)), key=lambda job: job.number)


def rule_of(run: str) -> str:
    """How the executor names the training of a run to Slurm."""
    return f"rule_train_model_wildcards_mini_{run.replace('/', '_')}"


def wait(condition: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def training(tree: Tree, running: Cluster, run: str) -> Job | None:
    """The job of a run once it has a checkpoint; None if it never gets so far."""
    checkpoint = tree.path / "results" / "mini" / run / "checkpoint.pt"
    return running.last(rule_of(run)) if wait(checkpoint.exists, 1800) else None


def trouble(tree: Tree, running: Cluster) -> list[threading.Thread]:
    """What befalls three trainings, each as soon as it has a checkpoint."""

    def cancel() -> None:
        if job := training(tree, running, CANCELLED):
            running.command("scancel", str(job.number))

    def time_out() -> None:
        if job := training(tree, running, TIMED_OUT):
            running.command("scontrol", "update", f"JobId={job.number}", "TimeLimit=1")
            # It makes no more progress until Slurm ends it, so that the minute passes without work.
            for process in running.processes(job):
                os.kill(process, signal.SIGSTOP)

    def preempt() -> None:
        if job := training(tree, running, PREEMPTED):
            running.command("scontrol", "requeue", str(job.number))
            if wait(lambda: (last := running.last(job.rule)) and last.state == "PENDING", 600):
                # Slurm refuses where the job has started by itself in the meantime.
                running.said("scontrol", "update", f"JobId={job.number}", "StartTime=now")

    threads = [threading.Thread(target=target, daemon=True) for target in (cancel, time_out, preempt)]
    for thread in threads:
        thread.start()
    return threads


def submit(tree: Tree, running: Cluster, targets: list[str], *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        tree.command(*HERE, *options, "--", *targets), cwd=tree.path, env=tree.environment() | running.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        # What runs the tests may have been started in the background of a shell, where SIGINT is ignored, here too then.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submitted]:
    """The miniature pipeline or some of it, from nothing, through the profile, with trouble on the way."""
    if SUBMITTED not in TARGETS:
        pytest.skip(f"takes minutes to half an hour: set CLAI_SLURM to one of {', '.join(TARGETS)}")
    if reason := missing():
        pytest.skip(f"no Slurm here: {reason}")
    tree = copy_of_repository(tmp_path_factory.mktemp("slurm") / "copy")
    targets = TARGETS[SUBMITTED](tree)
    planned = tree.planned(*targets)
    with tempfile.TemporaryDirectory(prefix="slurm") as folder, cluster(Path(folder), cpus=4, gpus=3) as running:
        snakemake = submit(tree, running, targets)
        threads = trouble(tree, running)
        said, _ = snakemake.communicate()
        assert snakemake.returncode == 0, said[-20000:]
        for thread in threads:
            thread.join(1)
            assert not thread.is_alive()
        yield Submitted(tree, running, planned, running.jobs())


def results(tree: Tree) -> dict[str, bytes]:
    """All that was made, but times."""
    folders = [tree.path / "results" / "mini", tree.path / "paper_figures" / "mini"]
    return repeatable(tree, [file for folder in folders for file in folder.rglob("*") if file.is_file()])


def part_of(tree: Tree) -> list[str]:
    settings = load_settings(tree.path, mini=True)
    files = [file for name in EVIDENCE for file in evidence_files("results/mini", name, settings)]
    return files + [f"paper_figures/mini/{name}" for name in DRAWN]


def models_of(tree: Tree) -> list[str]:
    runs = (CANCELLED, TIMED_OUT, PREEMPTED, STOPPED, ORPHANED)
    return [f"results/mini/{run}/{name}" for run in runs for name in ("model.safetensors", "history.csv", "run.json")]


TARGETS: dict[str, Callable[[Tree], list[str]]] = {
    "models": models_of,
    "part": part_of,
    "whole": lambda tree: ["mini"],
}


def test_outputs_are_those_of_a_local_run(submitted: Submitted, miniature: Tree) -> None:
    here, there = results(miniature), results(submitted.tree)
    assert there.keys() <= here.keys()
    assert {file for file in TARGETS[SUBMITTED](miniature) if file in here} <= there.keys()
    if SUBMITTED == "whole":
        assert there.keys() == here.keys()
    assert [name for name in there if here[name] != there[name]] == []


def test_each_job_ran_once_as_a_slurm_job_and_local_ones_did_not(submitted: Submitted) -> None:
    done = Counter(
        re.match(r"rule_(\w+?)(_wildcards_|$)", job.rule)[1] for job in submitted.jobs if job.state == "COMPLETED"
    )  # type: ignore[index]
    local = {"mini", "make_miniature", "fetch_source"}
    remote = {
        rule: n
        for rule, n in submitted.planned.items()
        if rule not in local and not rule.startswith(("render_", "draw_"))
    }
    assert done == remote
    troubled = {job.number for run in (CANCELLED, TIMED_OUT) for job in submitted.attempts(run)[:1]}
    assert {job.number for job in submitted.jobs if job.state != "COMPLETED"} == troubled


def test_jobs_got_what_the_profile_asks_for(submitted: Submitted) -> None:
    retried = {job.number for run in (CANCELLED, TIMED_OUT) for job in submitted.attempts(run)}
    assert {"train_model", "prepare_dataset"} <= submitted.planned.keys()
    for rule in REQUESTED.keys() & submitted.planned.keys():
        memory, minutes, gpus = REQUESTED[rule]
        jobs = [job for job in submitted.jobs if job.rule.startswith(f"rule_{rule}_") and job.number not in retried]
        assert {(job.memory, job.minutes, job.gpus, job.cpus) for job in jobs} == {(memory, minutes, gpus, 1)}, rule


def test_jobs_with_a_gpu_land_where_gpus_are(submitted: Submitted) -> None:
    assert {job.node for job in submitted.jobs if job.gpus} == {GPU_NODE}
    assert CPU_NODE in {job.node for job in submitted.jobs}


def test_accounting_agrees_with_run_records(submitted: Submitted) -> None:
    """Slurm counts Snakemake too: its start in the time, its process on the node (and pages that both share) in the memory."""
    root, compared = submitted.tree.path / "results" / "mini", 0
    for file in root.glob("*/*/*/run.json"):
        attempts = submitted.attempts(str(file.parent.relative_to(root)))
        if len(attempts) != 1 or attempts[0].restarts:
            continue
        (job,), record = attempts, json.loads(file.read_text())
        assert -1 <= job.elapsed - record["wall_seconds"] <= STARTS_SECONDS, file
        # Slurm looks once a second, and may miss a peak.
        assert 0.9 * record["peak_memory_mb"] <= job.peak_memory <= record["peak_memory_mb"] + SNAKEMAKE_MB, file
        compared += 1
    assert compared >= (2 if SUBMITTED == "models" else 10)


@pytest.mark.parametrize(("run", "state"), [(CANCELLED, "CANCELLED"), (TIMED_OUT, "TIMEOUT")])
def test_job_that_was_ended_is_retried_with_more_and_resumes(submitted: Submitted, run: str, state: str) -> None:
    first, second = submitted.attempts(run)
    assert (first.state, second.state) == (state, "COMPLETED")
    assert (second.memory, second.minutes) == (16000, 480)
    assert "resumed after" in log_of(submitted.tree, run)


def test_preempted_job_goes_back_into_the_queue_and_resumes(submitted: Submitted) -> None:
    (job,) = submitted.attempts(PREEMPTED)
    assert (job.state, job.restarts) == ("COMPLETED", 1)
    assert "resumed after" in log_of(submitted.tree, PREEMPTED)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_job_whose_gpu_is_none_trains_on_the_cpu(submitted: Submitted) -> None:
    (job, *_) = submitted.attempts(PREEMPTED)
    assert job.gpus == 1
    assert json.loads((submitted.tree.path / "results/mini" / PREEMPTED / "run.json").read_text())["device"] == "cpu"


def without(tree: Tree, run: str) -> list[str]:
    """Delete what a training left; return the target that makes it again."""
    for name in ("model.safetensors", "history.csv", "run.json"):
        (tree.path / "results/mini" / run / name).unlink()
    return [f"results/mini/{run}/model.safetensors"]


def assert_same_training(tree: Tree, other: Tree, run: str) -> None:
    folder = Path("results/mini") / run
    assert not (tree.path / folder / "checkpoint.pt").exists()
    for name in ("model.safetensors", "history.csv"):
        here, there = (repeatable(one, [one.path / folder / name]) for one in (tree, other))
        assert here == there, name


def test_stopped_workflow_cancels_its_jobs_and_goes_on_from_their_checkpoints(
    submitted: Submitted, miniature: Tree
) -> None:
    tree, running = submitted.tree, submitted.cluster
    targets = without(tree, STOPPED)
    # It does not cancel a job that it is asking Slurm about at that moment, so it is interrupted before it asks.
    snakemake = submit(tree, running, targets, "--slurm-init-seconds-before-status-checks", "30")
    job = training(tree, running, STOPPED)
    assert job is not None
    os.killpg(snakemake.pid, signal.SIGINT)
    snakemake.communicate()
    assert wait(lambda: (last := running.last(job.rule)) and last.state == "CANCELLED", 120)
    assert "stopped; the last state is that after" in log_of(tree, STOPPED)
    again = submit(tree, running, targets)
    said, _ = again.communicate()
    assert again.returncode == 0, said[-20000:]
    assert "resumed after" in log_of(tree, STOPPED)
    assert_same_training(tree, miniature, STOPPED)


def test_node_that_dies_in_the_middle_of_a_training_is_survived(submitted: Submitted, miniature: Tree) -> None:
    tree, running = submitted.tree, submitted.cluster
    snakemake = submit(tree, running, without(tree, ORPHANED))
    job = training(tree, running, ORPHANED)
    assert job is not None
    running.kill(GPU_NODE)
    assert wait(lambda: running.state(GPU_NODE).startswith("down"), 120)
    running.power_on(GPU_NODE)
    said, _ = snakemake.communicate()
    assert snakemake.returncode == 0, said[-20000:]
    first, *again = (one for one in running.jobs() if one.number >= job.number)
    last = again[-1] if again else first
    # Slurm puts the job back into the queue, or the step reports its end first and Snakemake submits another.
    assert (last.state, last.node, bool(again) or last.restarts > 0) == ("COMPLETED", GPU_NODE, True)
    assert "resumed after" in log_of(tree, ORPHANED)
    assert_same_training(tree, miniature, ORPHANED)


def test_partition_that_allows_less_time_than_a_rule_asks_for_is_met_with_a_message(
    submitted: Submitted, miniature: Tree
) -> None:
    tree, running = submitted.tree, submitted.cluster
    profile = tree.path / "profiles/slurm/config.yaml"
    text = profile.read_text()
    mine = text.replace("  partition: null", "  partition: short").replace("  account: null", f"  account: {ACCOUNT}")
    profile.write_text(mine)
    try:
        snakemake = submit(tree, running, without(tree, HURRIED))
        said, _ = snakemake.communicate()
    finally:
        profile.write_text(text)
    assert snakemake.returncode == 0, said[-20000:]
    assert (
        f"ends jobs after {SHORT_MINUTES} minutes, and some rules ask for 240: their jobs get {SHORT_MINUTES}" in said
    )
    job = running.last(rule_of(HURRIED))
    assert job is not None
    assert (job.partition, job.account, job.minutes) == ("short", ACCOUNT, SHORT_MINUTES)
    assert_same_training(tree, miniature, HURRIED)


def log_of(tree: Tree, run: str) -> str:
    """What the last attempt said."""
    return (tree.path / "logs/mini" / run / "train_model.log").read_text()
