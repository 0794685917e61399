// The flags of `portcullis protect`.

import type { Command } from 'commander'
import { forControlPlane, wholeNumber } from '../command/flags.ts'
import type { CommandContext } from '../command/output.ts'
import { registerProtectInstall } from './install-program.ts'

export function addProtect(program: Command, { out, err, now, done }: CommandContext): void {
  const protect = program
    .command('protect')
    .description('pod protection: its state, what it would answer, its dry-run switch')
  forControlPlane(protect.command('status'))
    .description('PodProtectors with their numbers and cells; exit code 1 when one is below its minimum')
    .argument('[name]', 'only this one')
    .option('-n, --namespace <namespace>', 'namespace; default: default')
    .option('-A, --all-namespaces', 'in all namespaces', false)
    .action(async (name, options) =>
      done(
        (await import('./status.ts')).protectStatus({ ...options, ...(name !== undefined && { name }), now, out, err }),
      ),
    )
  forControlPlane(protect.command('why'))
    .description('whether a pod may be deleted now, and why; exit code 1 when the deletion would be refused')
    .argument('<pod>', 'its name')
    .option('-n, --namespace <namespace>', 'namespace of the pod; default: default')
    .requiredOption('--cluster <name>', 'UpstreamCluster of the pod, or the name of a cell')
    .option(
      '--pod-kubeconfig <file>',
      'kubeconfig of that cluster, or of the gateway in front of it; default: through the gateway, else with its credential',
    )
    .option('--pod-context <name>', "context in it; default: the kubeconfig's own")
    .option('--stale-after <duration>', '--protection-stale-after of the gateway; default: as it marked the cells')
    .option('--clock-skew <duration>', '--protection-clock-skew of the gateway')
    .option('--max-concurrent-lag <n>', '--protection-max-concurrent-lag of the gateway', wholeNumber)
    .action(async (pod, options) => done((await import('./why.ts')).protectWhy({ ...options, pod, now, out, err })))
  forControlPlane(protect.command('dry-run'))
    .description('on: evaluate and count, but refuse nothing; off: refuse again. Waits until every replica does so')
    .argument('<mode>', 'on or off')
    .argument('[clusters...]', 'metadata.name of UpstreamClusters; default: all with spec.podProtection')
    .option('--timeout <duration>', 'how long to wait for each', '30s')
    .action(async (mode, clusters, options) =>
      done((await import('./dry-run.ts')).protectDryRun({ ...options, mode, clusters, now, out, err })),
    )
  registerProtectInstall(protect, { out, err, now, done })
}
