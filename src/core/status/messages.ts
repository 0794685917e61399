// Sentences in a status: all that is to be said, within what a field may hold.

import type { SourceError } from '../../api/ports/ports.ts'

/** metav1.Condition allows 32768; nobody reads more than this. */
const MAX_LENGTH = 8_000

/** How a replica begins to say that it keeps shared limits alone. */
export const REDIS_AWAY = 'Redis is away'

/** `spec.servers[0].endpoint: not a URL; write https://host:port`. */
export function problemMessage({ path, message, fix }: SourceError): string {
  return `${path === '' ? '' : `${path}: `}${message}${fix === '' ? '' : `; ${fix}`}`
}

/** Joined; what does not fit is counted. The last one always stands there. */
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
