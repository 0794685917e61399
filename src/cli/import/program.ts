// The flags of `portcullis import`.

import type { Command } from 'commander'
import { OWN_NAMESPACE } from '../../kube/api/own-names.ts'
import { forControlPlane } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'

export function addImport(program: Command, { out, err, done }: CommandContext): void {
  const command = program.command('import').description('import UpstreamClusters from kubeconfigs or a KubeGateway')
  forControlPlane(command.command('kubegateway'))
    .description('import the UpstreamClusters of a KubeGateway control plane, and report everything that differs')
    .option('--dir <dir>', 'directory for a file for each cluster; default: write to standard output')
    .option('--force', 'overwrite existing files', false)
    .action(async (options) => done((await import('./kubegateway.ts')).importKubeGateway({ ...options, out, err })))
  command
    .command('kubeconfig')
    .description('make an UpstreamCluster and a Secret for each context')
    .argument('<file>', 'kubeconfig')
    .option('--namespace <namespace>', 'namespace of the Secrets', OWN_NAMESPACE)
    .option('--offline', 'do not read the CA of client certificates from the clusters', false)
    .option('--dir <dir>', 'directory for a file for each cluster; default: write to standard output')
    .option('--force', 'overwrite existing files', false)
    .action(async (file, options) =>
      done((await import('./kubeconfig.ts')).importKubeconfig({ ...options, file, out, err })),
    )
}
