// The status without what changes with every write. The autoscaler writes every ten seconds, and mostly nothing but the times.

import { goTime } from './status.ts'

const PROBE_TIMES = /^(?:time: |[ -]*lastProbeTime: ).*$/gm
const HEAD_TIME = /^time: "?(.{1,100})/m

/** When the status says that it was written, milliseconds since the epoch; 0 = it does not. */
export function writtenAt(text: string): number {
  return goTime(HEAD_TIME.exec(text)?.[1] ?? '')
}

/** Two statuses with the same text say the same, apart from when they were written. */
export function withoutProbeTimes(text: string): string {
  return text.replaceAll(PROBE_TIMES, '')
}
