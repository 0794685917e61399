// Flags that several commands have, and how values of flags are read. It is loaded at each start: nothing but commander behind it.

import { type Command, InvalidArgumentError } from 'commander'

/** A command that speaks to the API server of the objects, with the flags that say where it is. */
export type ControlPlaneCommand = Command<[], { kubeconfig?: string; context?: string }>

/** Options of every command that speaks to the API server of the objects. */
export function forControlPlane(command: Command): ControlPlaneCommand {
  return command
    .option('--kubeconfig <file>', 'of the API server that holds the objects; default: as kubectl')
    .option('--context <name>', "context in it; default: the kubeconfig's own")
}

/** For a flag that may be repeated; its default is []. */
export function collect(value: string, all: string[]): string[] {
  return [...all, value]
}

/** For a flag that takes a whole number, 0 or more. */
export function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number, 0 or more.')
}
