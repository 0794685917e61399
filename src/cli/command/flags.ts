// Flags that several commands have, and how values of flags are read. It is loaded at each start: nothing but commander behind it.

import { type Command, InvalidArgumentError, Option } from 'commander'

/** A command that speaks to the API server of the objects, with the flags that say where it is. */
type ControlPlaneCommand = Command<[], { kubeconfig?: string; context?: string }>

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

/** A command that asks a running gateway, with the flags that say where it is and who asks. */
type AdminCommand = Command<
  [],
  { admin: string; caFile?: string; tokenFile?: string; kubeconfig?: string; context?: string }
>

/** Options of every command that asks a running gateway. */
export function forAdmin(command: Command): AdminCommand {
  const url = new Option('--admin <url>', 'admin listener of the gateway').env('PORTCULLIS_ADMIN')
  return command
    .addOption(url.default('http://127.0.0.1:9090'))
    .option('--ca-file <file>', "CA of its certificate, PEM; default: those of Node and of the kubeconfig's cluster")
    .option('--token-file <file>', 'bearer token for it; default: the credentials of the kubeconfig, for https alone')
    .option('--kubeconfig <file>', 'who asks; default: as kubectl')
    .option('--context <name>', "context in it; default: the kubeconfig's own")
}
