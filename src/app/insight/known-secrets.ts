// The values of all secrets that the process knows now, to take them out of what it shows of itself, wherever they got there: error
// messages of other servers, annotations, lines of the log. Beside, not instead of, what redact.ts finds by names and forms.

import { HiddenValues, isTooShort, LEAST_SECRET } from '../../core/identity/hidden-values.ts'
import { redact, redactText } from '../../core/identity/redact.ts'
import type { ClusterTable } from '../../state/clusters.ts'
import type { Config } from '../config/config.ts'
import { settingSecrets } from './secret-files.ts'

/** Values of files that have changed since are kept for the lines of the log that may have them. */
const MAX_REMEMBERED = 1_000

/** For one answer. */
export interface Redaction {
  /** A plain copy for JSON. */
  object(value: unknown): unknown
  text(text: string): string
  /** What is not looked for, and why: names, no values. */
  readonly report: object
}

export class KnownSecrets {
  readonly #config: Config
  readonly #clusters: ClusterTable
  readonly #remembered = new Set<string>()
  #last: { readonly values: ReadonlySet<string>; readonly hidden: HiddenValues } | undefined

  /** Reads the files of settings, to know their values after they have changed. */
  constructor(config: Config, clusters: ClusterTable) {
    this.#config = config
    this.#clusters = clusters
    this.#ofSettings()
  }

  /** Reads the files again. @param others values that it cannot know @throws {TooManySecrets} */
  redaction(others: readonly string[] = []): Redaction {
    const { unread, tooShort } = this.#ofSettings()
    const values = new Set([...this.#remembered, ...others])
    for (const { compiled } of this.#clusters.values()) {
      const { client, serving } = compiled
      const own = [client.bearerToken, client.key, serving.key]
      for (const value of own) values.add(value)
      if (own.some(isTooShort)) tooShort.add(`credentials of the cluster ${compiled.name}`)
    }
    const hidden = this.#hidden(values)
    const text = (shown: string): string => redactText(hidden.hide(shown))
    return {
      object: (value) => redact(value, text),
      text,
      report: { shorterThan: LEAST_SECRET, tooShortToLookFor: [...tooShort], filesNotRead: [...new Set(unread)] },
    }
  }

  #ofSettings(): { readonly unread: readonly string[]; readonly tooShort: Set<string> } {
    const { found, unread } = settingSecrets(this.#config)
    for (const { value } of found) {
      this.#remembered.delete(value)
      this.#remembered.add(value)
    }
    for (const value of this.#remembered) {
      if (this.#remembered.size <= Math.max(MAX_REMEMBERED, found.length)) break
      this.#remembered.delete(value)
    }
    return { unread, tooShort: new Set(found.filter(({ value }) => isTooShort(value)).map(({ setting }) => setting)) }
  }

  /** As the last one when there are no others, because it takes a while where clusters are many. */
  #hidden(values: ReadonlySet<string>): HiddenValues {
    const last = this.#last
    if (last !== undefined && last.values.size === values.size && [...values].every((value) => last.values.has(value)))
      return last.hidden
    const hidden = new HiddenValues(values)
    this.#last = { values, hidden }
    return hidden
  }
}
