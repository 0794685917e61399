/** Waits without giving the processor away: timers are too coarse to hit the middle of a write. */
export function spin(microseconds: number): void {
  const end = performance.now() + microseconds / 1_000
  while (performance.now() < end);
}
