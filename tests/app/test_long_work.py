"""One long job at a time, in short pieces, behind requests."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from app.process.long_work import LongWork
from app.verbs.admission import Admission

PATIENCE = 60.0


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story(), PATIENCE)

    asyncio.run(bounded())


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


class Lulls:
    """Takes note of how long each lull may be waited for."""

    def __init__(self) -> None:
        self.patience: list[float] = []

    async def __call__(self, patience: float) -> None:
        self.patience.append(patience)
        await asyncio.sleep(0)


def test_jobs_of_all_kinds_run_one_at_a_time_in_the_order_of_their_arrival() -> None:
    log: list[str] = []

    async def story() -> None:
        work = LongWork()

        async def job(name: str, *, cut: bool) -> None:
            async with work.turn() if cut else work.exclusive():
                log.append(f"{name} begins")
                for _ in range(3):
                    await work.checkpoint()
                log.append(f"{name} ends")

        await asyncio.gather(job("scrape", cut=True), job("explanation", cut=False), job("dump", cut=True))

    run(story)
    assert log == [f"{name} {what}" for name in ("scrape", "explanation", "dump") for what in ("begins", "ends")]


def test_a_piece_is_over_after_a_millisecond() -> None:
    seen = []

    async def story() -> None:
        work = LongWork()
        async with work.turn():
            for _ in range(2):
                seen.append(work.over)
                busy(0.0015)
                seen.append(work.over)
                await work.checkpoint()

    run(story)
    assert seen == [False, True, False, True]


def test_the_next_piece_waits_for_a_lull_for_ten_times_the_last_one_and_no_longer() -> None:
    lulls = Lulls()

    async def story() -> None:
        work = LongWork(lulls, PATIENCE)
        async with work.turn():
            busy(0.01)
            await work.checkpoint()
            await work.checkpoint()

    run(story)
    _, after_the_long_piece, after_none = lulls.patience
    assert 0.1 <= after_the_long_piece <= PATIENCE
    assert after_none < after_the_long_piece


def test_work_that_cannot_be_cut_has_all_of_the_patience() -> None:
    lulls = Lulls()

    async def story() -> None:
        work = LongWork(lulls, PATIENCE)
        async with work.exclusive():
            await work.wait_until_idle()

    run(story)
    assert lulls.patience == [PATIENCE, PATIENCE]


def test_a_job_goes_on_under_a_flood_of_requests() -> None:
    async def story() -> None:
        admission = Admission(deadline=60, queue_limit=10**6, max_bytes=10**9, clock=time.monotonic)
        work = LongWork(admission.wait_until_idle, 60)

        async def come() -> None:
            began = time.monotonic()
            if admission.enter(began) is None:
                await admission.wait(began, lambda: False)

        async def flood() -> None:
            async with asyncio.TaskGroup() as requests:
                while True:
                    for _ in range(3):
                        requests.create_task(come())
                    await asyncio.sleep(0)

        task = asyncio.create_task(flood())
        async with work.turn():
            for _ in range(10):
                busy(0.001)
                await work.checkpoint()
        assert admission.waiting
        task.cancel()

    run(story)


def test_the_turn_is_free_after_a_job_that_failed_or_was_cancelled() -> None:
    async def story() -> None:
        work = LongWork()

        async def stuck() -> None:
            async with work.turn():
                await asyncio.sleep(PATIENCE)

        async def failing() -> None:
            async with work.turn():
                raise ValueError

        task = asyncio.create_task(stuck())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, failing(), return_exceptions=True)
        async with work.turn():
            pass

    run(story)
