// The flags of `portcullis scale`.

import type { Command } from 'commander'
import { forClusters, forControlPlane, parseWholeNumber } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'

export function addScale(program: Command, { out, err, now, done }: CommandContext): void {
  const scale = program
    .command('scale')
    .description('predict which pods a scale-down deletes, and show the state of the cluster-autoscalers')
  forControlPlane(scale.command('why'))
    .description(
      'predict which pods a new number of replicas deletes, and by which rule; exit with 1 if protection would refuse it',
    )
    .argument('<type/name>', 'deployment, replicaset, statefulset or replicationcontroller, as deployment/web')
    .requiredOption('--replicas <n>', 'the new number', parseWholeNumber)
    .option('-n, --namespace <namespace>', 'where it is; default: default')
    .option(
      '--cluster <name>',
      'UpstreamCluster that has it, a federated one with -n MEMBER--NAMESPACE, or the name of a cell; default: PodProtectors are not evaluated',
    )
    .option(
      '--pod-kubeconfig <file>',
      'kubeconfig of the cluster that has it; default: as protect why, or --kubeconfig',
    )
    .option('--pod-context <name>', "context in it; default: the kubeconfig's own")
    .option('--stale-after <duration>', '--protection-stale-after of the gateway; default: as it marked the cells')
    .option('--clock-skew <duration>', '--protection-clock-skew of the gateway')
    .option('--max-concurrent-lag <n>', '--protection-max-concurrent-lag of the gateway', parseWholeNumber)
    .option('-o, --output <format>', 'json; default: a table')
    .action(async (target, options) => done((await import('./why.ts')).scaleWhy({ ...options, target, now, out, err })))
  forClusters(scale.command('status'))
    .description('show the cluster-autoscalers of all clusters and their node groups; exit with 1 if one is unhealthy')
    .option('--cluster <name>', 'only this UpstreamCluster, or the members of this federated one')
    .option('-o, --output <format>', 'json; default: a table')
    .action(async (clusters, options) =>
      done((await import('./status.ts')).scaleStatus({ ...options, clusters, now, out, err })),
    )
}
