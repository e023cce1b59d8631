# What the workflow changes in Snakemake, and why: how jobs start, are chosen, are noted and stop. Makes no files.
import _thread
import os
import tempfile
import time
from functools import wraps
from pathlib import Path

from snakemake.io import _IOFile
from snakemake.persistence import PersistenceBase
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.script import PythonScript

from replication.runs.forks import THREADS, run_in_fork
from replication.runs.jobs import remove_finished_checkpoints
from replication.runs.output_checksums import OutputChecksums, bring_to_present

MANY_JOBS = 7  # from here on a run is faster where jobs share their imports
OF_RENDERING = 1 / 3  # the share of these imports that a job needs that renders a table or a page


def share_imports():
    """Let the scripts of many jobs share their imports; for few jobs, importing what all need would take longer."""
    plain = PythonScript.execute_script

    def execute_script(self, name, edit=False):
        own_process = self.conda_env or self.container_img or self.env_modules or self.bench_record
        if self.threads == THREADS and not own_process:
            run_in_fork(name, self.resources.get("tmpdir", tempfile.gettempdir()))
        else:
            plain(self, name, edit)

    jobs = [job.rule.name for job in workflow.dag.needrun_jobs()]
    if sum(OF_RENDERING if name.startswith("render_") else 1 for name in jobs) >= MANY_JOBS:
        # Snakemake has no setting for how a script starts. A version without this method would start it as before.
        PythonScript.execute_script = execute_script


def notice_altered_outputs():
    """Count an output that has changed since its job as incomplete, so that Snakemake makes it again where it is needed.

    An output from the future, with the content that its job wrote, is given the present time.
    """
    now = time.time()
    checksums = OutputChecksums(Path(".snakemake") / "output_checksums.jsonl")
    finished, incomplete = PersistenceBase.finished, PersistenceBase.incomplete

    async def note_and_finish(self, job):
        for output in job.output:
            if Path(output).is_file():
                checksums.note(output)
        await finished(self, job)

    async def incomplete_or_altered(self, job):
        found = await incomplete(self, job)
        for output in job.output:
            if not workflow.dryrun:
                bring_to_present(output, now)
            if output not in found and (change := checksums.altered(output)):
                logger.warning(f"{change}: {job.rule.name} runs again")
                found.append(output)
        return found

    # Snakemake has no hook at the end of a job, and no setting for this.
    PersistenceBase.finished, PersistenceBase.incomplete = note_and_finish, incomplete_or_altered


def stop_in_own_thread():
    """Let a thread of its own do what SIGTERM asks for.

    Snakemake's handler waits for a lock that the main thread holds while it finishes jobs. A signal interrupts that very thread,
    which would then wait for itself, for ever.
    """
    exit_gracefully = JobScheduler.exit_gracefully
    JobScheduler.exit_gracefully = lambda *arguments: _thread.start_new_thread(exit_gracefully, arguments)


def measure_inputs_once():
    """Ask for the size and the checksum of a file once, as long as it does not change.

    Snakemake asks for the sizes of all inputs of all jobs that could start, whenever one ends, and for the checksums of all
    inputs of a job for each of its outputs: in a large run, a minute of a core.
    """
    checksum = _IOFile.checksum
    measured, known = set(), {}

    async def update_input_sizes(self, jobs):
        for path in {path for job in jobs if job not in measured for path in job.input}:
            self._input_sizes[path] = await path.size() if await path.exists() else None
        measured.update(jobs)

    @wraps(checksum)
    async def checksum_of_state(self, *arguments, **options):
        try:
            status = os.stat(self.file)
        except OSError:
            return await checksum(self, *arguments, **options)
        state = (str(self), status.st_size, status.st_mtime_ns, status.st_ctime_ns, arguments, *options.items())
        if state not in known:
            known[state] = await checksum(self, *arguments, **options)
        return known[state]

    JobScheduler.update_input_sizes, _IOFile.checksum = update_input_sizes, checksum_of_state


def start_jobs_at_any_rate():
    """Let jobs on this machine start as soon as there is a core for them.

    With a limit of jobs a second, however high, each job that starts makes Snakemake look at its queue once more in every such
    time until the run ends; no value of the option means none.
    """
    initialise = JobScheduler.__init__

    @wraps(initialise)
    def without_limit(self, workflow, *arguments, **options):
        initialise(self, workflow, *arguments, **options)
        if workflow.local_exec:
            self.job_rate_limiter = None

    JobScheduler.__init__ = without_limit


def remove_checkpoints_where_nothing_is_to_be_done():
    """Delete the checkpoints of finished runs also where no job is left, as `onsuccess` does after jobs.

    A command that is interrupted after its last job leaves them, and Snakemake has no hook for one with nothing to do.
    """
    initialise = JobScheduler.__init__

    @wraps(initialise)
    def after_removing(self, workflow, *arguments, **options):
        initialise(self, workflow, *arguments, **options)
        if not (workflow.dryrun or workflow.execution_settings.no_hooks or len(workflow.dag)):
            remove_finished_checkpoints(Path("results"))

    JobScheduler.__init__ = after_removing


if workflow.is_main_process:
    notice_altered_outputs()
    stop_in_own_thread()
    measure_inputs_once()
    start_jobs_at_any_rate()
    remove_checkpoints_where_nothing_is_to_be_done()
