// Shows states as a symbol and a word: never by colour alone.

import type { ComponentChildren, VNode } from 'preact'
import type { Trouble } from '../../api/overview.ts'

export type Tone = 'good' | 'neutral' | 'warn' | 'bad'

const SIGNS: Readonly<Record<Tone, string>> = { good: '●', neutral: '○', warn: '◆', bad: '▲' }

export function State({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): VNode {
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]} </span>
      {children}
    </span>
  )
}

const TROUBLES: Readonly<Record<Trouble, readonly [Tone, string]>> = {
  down: ['bad', 'no endpoint'],
  errors: ['bad', 'errors'],
  endpoints: ['warn', 'endpoints down'],
  credentials: ['bad', 'credential refused'],
  refused: ['warn', 'refusing'],
  slow: ['warn', 'slow'],
  degraded: ['warn', 'switched'],
}

export function Troubles({ troubles }: { readonly troubles: readonly Trouble[] }): VNode {
  if (troubles.length === 0) return <State tone="good">healthy</State>
  return (
    <>
      {troubles.map((trouble) => {
        const [tone, word] = TROUBLES[trouble] ?? ['warn', trouble]
        return (
          <State key={trouble} tone={tone}>
            {word}
          </State>
        )
      })}
    </>
  )
}

/** Tone of the worst trouble. */
export function toneOf(troubles: readonly Trouble[]): Tone {
  const tones = troubles.map((trouble) => TROUBLES[trouble]?.[0] ?? 'warn')
  return tones.includes('bad') ? 'bad' : tones.includes('warn') ? 'warn' : 'good'
}
