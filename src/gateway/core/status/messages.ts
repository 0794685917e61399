// Messages in a status, within the size limit of a field.

import type { SourceError } from '../../api/resource-source.ts'

/** metav1.Condition allows 32768; that is more than people read. */
const MAX_LENGTH = 8_000

/** Prefix of a replica's message when it enforces shared limits on its own. */
export const REDIS_AWAY = 'Redis is away'

/** `spec.servers[0].endpoint: not a URL; write https://host:port`. */
export function problemMessage({ path, message, fix }: SourceError): string {
  return `${path === '' ? '' : `${path}: `}${message}${fix === '' ? '' : `; ${fix}`}`
}

/** Joins sentences; those that do not fit are only counted. The last one is always included. */
export function joinedMessages(messages: readonly string[]): string {
  const last = messages.at(-1) ?? ''
  let text = ''
  for (const [index, message] of messages.entries()) {
    if (index < messages.length - 1 && text.length + message.length + last.length > MAX_LENGTH) {
      const left = messages.length - 1 - index
      return `${text}. (${left} more). ${last.slice(0, MAX_LENGTH)}`
    }
    text += `${text === '' ? '' : '. '}${message.slice(0, MAX_LENGTH)}`
  }
  return text
}
