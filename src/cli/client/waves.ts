// Changes many clusters in waves: each wave has to be in force before the next begins, and the first failure ends it. What was changed stays
// so; what was not reached is not touched.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { inParallel } from './in-parallel.ts'

export interface WaveSteps<T> {
  /** Rejects with a Failure if this one can't be changed. */
  change(item: T): Promise<void>
  /** Waits until the changes of a wave are in force. Why they are not, by name; none = they are. */
  settle(items: readonly T[]): Promise<ReadonlyMap<string, string>>
  /** After each wave that is in force. @param wave counted from 1 */
  onWave(wave: number, waves: number, items: readonly T[]): void
}

export interface WaveOutcome<T> {
  readonly waves: number
  /** In which it has ended; 0 = it has not failed. */
  readonly failedIn: number
  readonly inForce: readonly T[]
  /** Changed, but it is not in force. */
  readonly changed: readonly T[]
  /** Why, by name: not changed, or not in force. */
  readonly failures: ReadonlyMap<string, string>
  readonly untouched: readonly T[]
}

/** A cluster that can't be changed: the message says why. Anything else that is thrown ends the command. */
export class Failure extends Error {
  /** The change was written all the same. */
  readonly written: boolean

  constructor(message: string, written: boolean = false) {
    super(message)
    this.written = written
  }
}

/** As maxUnavailable and maxSurge of a Deployment have it. */
export const DEFAULT_WAVE_SIZE = '25%'

/** @param text a number or a percentage of `count` @throws {UserError} */
export function readWaveSize(text: string, count: number): number {
  const [, digits = '', percent = ''] = /^(\d{1,6})(%?)$/.exec(text) ?? []
  const number = Number(digits)
  if (digits === '' || number === 0 || (percent !== '' && number > 100)) {
    throw new UserError(
      `--wave-size ${JSON.stringify(text)} is not a number of clusters`,
      'write --wave-size 10, or --wave-size 25%',
    )
  }
  return percent === '' ? number : Math.max(1, Math.ceil((count * number) / 100))
}

export async function inWaves<T extends { readonly name: string }>(
  items: readonly T[],
  size: number,
  steps: WaveSteps<T>,
): Promise<WaveOutcome<T>> {
  const waves = Math.ceil(items.length / size)
  const inForce: T[] = []
  for (let wave = 1; wave <= waves; wave++) {
    const members = items.slice((wave - 1) * size, wave * size)
    const written: T[] = []
    const failures = new Map<string, string>()
    await inParallel(members, async (item) => {
      if (failures.size > 0) return
      try {
        await steps.change(item)
        written.push(item)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        failures.set(item.name, error.message)
        if (error.written) written.push(item)
      }
    })
    for (const [name, why] of await steps.settle(written)) failures.set(name, why)
    inForce.push(...written.filter(({ name }) => !failures.has(name)))
    if (failures.size > 0) {
      const changed = written.filter(({ name }) => failures.has(name))
      const touched = new Set([...inForce, ...changed])
      const untouched = items.filter((item) => !touched.has(item) && !failures.has(item.name))
      return { waves, failedIn: wave, inForce, changed, failures, untouched }
    }
    steps.onWave(wave, waves, members)
  }
  return { waves, failedIn: 0, inForce, changed: [], failures: new Map(), untouched: [] }
}
