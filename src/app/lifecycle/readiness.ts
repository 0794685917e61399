// What /readyz says of a gateway: one line for each thing that has to be so.

import type { Check } from '../../admin/routes.ts'

export interface Progress {
  /** The source has delivered what there is. */
  readonly synced: boolean
  /** The first round of health checks is over. */
  readonly probed: boolean
  /** The ports were opened. */
  readonly listening: boolean
  /** A thread listens now. */
  readonly serving: boolean
  readonly stopping: boolean
  /** Of what is served although its source is away. */
  readonly lastGood: readonly Check[]
}

export function readinessOf({ synced, probed, listening, serving, stopping, lastGood }: Progress): readonly Check[] {
  return [
    { name: 'configuration', ok: synced, message: 'not read yet' },
    { name: 'health-checks', ok: probed, message: 'the first round of health checks has not finished' },
    { name: 'listeners', ok: listening, message: 'not open yet' },
    // A thread that died is replaced, after a pause when it dies again: while all are gone nobody accepts connections.
    { name: 'threads', ok: !listening || serving, message: 'no gateway thread is running' },
    { name: 'shutdown', ok: !stopping, message: 'shutting down' },
    ...lastGood,
  ]
}
