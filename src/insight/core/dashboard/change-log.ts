// The changes of the last half hour, bounded, in the order in which they happened.

import type { Change } from '../../api/overview.ts'

const KEPT_MS = 30 * 60 * 1000
const MAX_CHANGES = 2000
/** Leaves room for others if one cluster flaps. */
const MAX_OF_A_CLUSTER = 100
const MAX_TEXT = 256

export class ChangeLog {
  #changes: Change[] = []

  add(change: Change): void {
    const text = clip(change.text)
    const same = this.#changes.filter(({ cluster }) => cluster === change.cluster)
    if (same.length >= MAX_OF_A_CLUSTER) this.#changes.splice(this.#changes.indexOf(same[0] ?? change), 1)
    this.#changes.push({ ...change, text, by: clip(change.by) })
    if (this.#changes.length > MAX_CHANGES) this.#changes.shift()
  }

  /**
   * Newest first.
   * @param cluster default: all
   */
  recent(nowMs: number, cluster?: string): readonly Change[] {
    if ((this.#changes[0]?.at ?? nowMs) < nowMs - KEPT_MS) {
      this.#changes = this.#changes.filter(({ at }) => at >= nowMs - KEPT_MS)
    }
    const asked = cluster === undefined ? this.#changes : this.#changes.filter((one) => one.cluster === cluster)
    return asked.toReversed()
  }
}

/** Reasons and user names come from people and objects. */
export function clip(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…` : text
}
