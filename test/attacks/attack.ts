// What an attack of the corpus is: who can do it, what it is aimed at, and what the gateway may answer.

import type { KeyPair } from '../../src/pki/io/pki.ts'
import type { Answers } from './answers.ts'

/** 'known': with a client certificate that the cluster accepts. 'unknown': without any credential. */
export type Who = 'known' | 'unknown'

/** What an attack is aimed at, from where, and as which user. */
export interface Target {
  /** SNI and authority of the cluster. */
  readonly host: string
  /** Where clients connect to, on 127.0.0.1; the others: the embedded API server, the webhook of pod protection, health and metrics. */
  readonly port: number
  readonly controlPort: number
  readonly webhookPort: number
  readonly adminPort: number
  /** Address of loopback that the attack comes from. */
  readonly address: string
  /** The addresses `127.NETWORK.x.y` are the attack's, too, for one that has many. */
  readonly network: number
  /** A port for clients with PROXY protocol: where, and from which address its headers are believed. */
  readonly proxied: { readonly host: string; readonly balancer: string }
  readonly who: Who
  /** The certificate of the attacker; undefined if unknown. */
  readonly certificate: KeyPair | undefined
  /** Credentials of the embedded API server: without a role, of a viewer, and of an editor. */
  readonly control: { readonly roleless: KeyPair; readonly viewer: KeyPair; readonly editor: KeyPair }
  /** What a viewer must not get to see. */
  readonly secrets: readonly string[]
  readonly answers: Answers
}

export interface Attack {
  /** The class that it belongs to, or where it was seen: a CVE, a row of a review. */
  readonly reference: string
  /** One line. */
  readonly does: string
  readonly who: readonly Who[]
  /**
   * What the gateway may answer, as `Answers` counts it, beside what it may answer to every client (`ALWAYS_ALLOWED`). Any other answer
   * fails the test.
   */
  readonly answers: readonly string[]
  /** One of these must have been counted. Default: it is enough that something was sent. */
  readonly must?: readonly string[]
  /** Attacks at full speed until aborted. Rejects only for errors of the attack itself, not for how its connections end. */
  run(target: Target, signal: AbortSignal): Promise<void>
}

/** Ends of a connection that are defined for every attack, and the answers that name a limit. */
export const ALWAYS_ALLOWED: readonly string[] = [
  'closed',
  'refused',
  '429',
  'GOAWAY NO_ERROR',
  'GOAWAY ENHANCE_YOUR_CALM',
  // A client that writes without a pause, on a core that others need, may acknowledge too late (RFC 9113 section 6.5.3).
  'GOAWAY SETTINGS_TIMEOUT',
]
