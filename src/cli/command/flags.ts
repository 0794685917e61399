// Flags shared by several commands, and parsers of flag values. Loaded at each start, so it imports nothing but commander.

import { type Command, InvalidArgumentError, Option } from 'commander'

/** A command that uses the API server of the objects, with the flags that locate it. */
type ControlPlaneCommand = Command<[], { kubeconfig?: string; context?: string }>

/** Adds the flags of every command that uses the API server of the objects. */
export function forControlPlane(command: Command): ControlPlaneCommand {
  return command
    .option(
      '--kubeconfig <file>',
      'kubeconfig of the API server that holds the objects; default: the one that kubectl uses',
    )
    .option('--context <name>', "context to use; default: the kubeconfig's current one")
}

type ClusterFlags = {
  kubeconfig?: string
  context?: string
  selector?: string
  all: boolean
  except: string[]
}

/** A command about several clusters: names and globs are arguments. */
type ClustersCommand = Command<[string[]], ClusterFlags>

/** Adds the arguments and flags that choose clusters in the API server of the objects. */
export function forClusters(command: Command): ClustersCommand {
  return forControlPlane(command)
    .argument('[cluster...]', "metadata.name of UpstreamClusters, or globs: 'prod-*'")
    .option(
      '-l, --selector <selector>',
      "only UpstreamClusters with these labels: region=eu, 'region in (eu,us)', '!canary'",
    )
    .option('--all', 'all UpstreamClusters', false)
    .option(
      '--except <name>',
      'leave out this UpstreamCluster, or those that match a glob; may be repeated',
      collect,
      [],
    )
}

/** The same for a command that changes them. */
export function forChanges(
  command: Command,
): Command<[string[]], ClusterFlags & { yes: boolean; dryRun: boolean; waveSize?: string; output?: string }> {
  return forClusters(command)
    .option('-y, --yes', 'with several clusters: do not ask for confirmation', false)
    .option('--dry-run', 'show the plan, and change nothing', false)
    .option('--wave-size <n>', 'with several clusters: how many at once, a number or a percentage; default: 25%')
    .option('-o, --output <format>', 'with several clusters: wide prints a line for each, however many there are')
}

/** For a repeatable flag; its default is []. */
export function collect(value: string, all: string[]): string[] {
  return [...all, value]
}

/** For a flag that takes a whole number, 0 or more. */
export function parseWholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number, 0 or more.')
}

/** A command that queries a running gateway, with the flags that locate it and authenticate the caller. */
type AdminCommand = Command<
  [],
  { admin: string; caFile?: string; tokenFile?: string; kubeconfig?: string; context?: string }
>

/** Adds the flags of every command that queries a running gateway. */
export function forAdmin(command: Command): AdminCommand {
  const url = new Option('--admin <url>', 'admin listener of the gateway').env('PORTCULLIS_ADMIN')
  return command
    .addOption(url.default('http://127.0.0.1:9090'))
    .option(
      '--ca-file <file>',
      "CA of the listener's certificate, PEM; default: the CAs of Node and of the kubeconfig's cluster",
    )
    .option(
      '--token-file <file>',
      'bearer token for the listener; default: the credentials of the kubeconfig, over https only',
    )
    .option('--kubeconfig <file>', 'kubeconfig with the credentials to use; default: the one that kubectl uses')
    .option('--context <name>', "context to use; default: the kubeconfig's current one")
}
