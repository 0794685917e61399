// What is said to the process of hostile endpoints, and what it says: JSON lines.

import type { KeyPair } from '../../../src/pki/io/pki.ts'

export type EndpointCommand =
  | { readonly serve: { readonly cert: string; readonly key: string } }
  /** Answers the calls of each cluster so, and makes the gateway ask there. */
  | {
      readonly attack: string
      /** By kind of call. */
      readonly clusters: Readonly<Record<string, string>>
      /** Its port. */
      readonly gateway: number
      readonly certificate: KeyPair
    }
  | { readonly count: true }
  | { readonly stop: true }

/** The answers to these commands, in their order. */
export type EndpointReport =
  /** By kind of call. */
  | { readonly ports: Readonly<Record<string, number>> }
  | { readonly began: true }
  | { readonly answered: Readonly<Record<string, number>> }
  | { readonly stopped: true }
