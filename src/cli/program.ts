// The flags of the commands that look inside a running gateway, replay an access log, and import clusters.

import { Argument, type Command, Option } from 'commander'
import { OWN_NAMESPACE } from '../kube/api/own-names.ts'
import { forAdmin, forControlPlane, parseWholeNumber } from './command/flags.ts'
import type { CommandContext } from './command/output.ts'

export function addInside(program: Command, { out, err, done }: CommandContext): void {
  forAdmin(program.command('log-level'))
    .description('show the log level of all replicas of a running gateway; with LEVEL, change it for a while')
    .addArgument(new Argument('[level]').choices(['debug', 'info', 'warn', 'error']))
    .option('--for <duration>', 'time after which the configured level applies again', '10m')
    .action(async (level, options) => {
      const given = { ...options, ...(level !== undefined && { level }), out, err }
      return done((await import('./inside.ts')).logLevel(given))
    })
  forAdmin(program.command('support-bundle'))
    .description('write version, settings, state, metrics and log of a running gateway into a file, without secrets')
    .option('--file <file>', 'file to write; must not exist', 'portcullis-support.tar.gz')
    .option('--profile <seconds>', 'include a CPU profile of this duration', parseWholeNumber, 0)
    .action(async (options) => done((await import('./inside.ts')).supportBundle({ ...options, out, err })))
}

interface Context extends CommandContext {
  readonly input: AsyncIterable<string>
}

export function addReplay(program: Command, { input, out, err, done }: Context): void {
  forControlPlane(program.command('replay'))
    .description('show what another configuration would have done with the requests of an access log')
    .argument('<log>', 'access log of the gateway, plain or compressed by gzip; - is standard input')
    .option('--config <path>', 'directory or file of UpstreamClusters; default: the API server that holds them')
    .option('--compare <path>', 'directory or file to compare with; default: the results in the log')
    .option('--fail-on-change', 'exit with 2 if a request would get another answer', false)
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action(async (log, options) => done((await import('./replay.ts')).replay({ ...options, log, input, out, err })))
}

export function addImport(program: Command, { out, err, done }: CommandContext): void {
  const command = program.command('import').description('import UpstreamClusters from kubeconfigs or a KubeGateway')
  forControlPlane(command.command('kubegateway'))
    .description('import the UpstreamClusters of a KubeGateway control plane, and report everything that differs')
    .option('--dir <dir>', 'directory for a file for each cluster; default: write to standard output')
    .option('--force', 'overwrite existing files', false)
    .action(async (options) =>
      done((await import('./import/kubegateway.ts')).importKubeGateway({ ...options, out, err })),
    )
  command
    .command('kubeconfig')
    .description('make an UpstreamCluster and a Secret for each context')
    .argument('<file>', 'kubeconfig')
    .option('--namespace <namespace>', 'namespace of the Secrets', OWN_NAMESPACE)
    .option('--offline', 'do not read the CA of client certificates from the clusters', false)
    .option('--dir <dir>', 'directory for a file for each cluster; default: write to standard output')
    .option('--force', 'overwrite existing files', false)
    .action(async (file, options) =>
      done((await import('./import/kubeconfig.ts')).importKubeconfig({ ...options, file, out, err })),
    )
}
