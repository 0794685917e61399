// Profiles of the calling thread, main or worker, with node:inspector: CPU (.cpuprofile) and allocations (.heapprofile), readable by Chrome's
// DevTools and speedscope.

import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'

export type ProfileKind = 'cpu' | 'heap'

/** Between two samples: a one-minute profile is a few MB. */
const SAMPLE_US = 1_000
/** Between two sampled allocations, on average. */
const SAMPLE_BYTES = 64 * 1024

/** JSON. Rejects if the inspector does. */
export async function profileThread(kind: ProfileKind, seconds: number): Promise<string> {
  const session = new Session()
  session.connect()
  try {
    return JSON.stringify(await (kind === 'cpu' ? cpu(session, seconds) : heap(session, seconds)))
  } finally {
    session.disconnect()
  }
}

async function cpu(session: Session, seconds: number): Promise<object> {
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
  await session.post('Profiler.start')
  await sleep(seconds * 1000)
  const { profile } = await session.post('Profiler.stop')
  return profile
}

async function heap(session: Session, seconds: number): Promise<object> {
  await session.post('HeapProfiler.enable')
  await session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLE_BYTES })
  await sleep(seconds * 1000)
  const { profile } = await session.post('HeapProfiler.stopSampling')
  return profile
}
