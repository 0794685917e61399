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
      'predict which pods a scale-down deletes, and by which rule; exit with 1 if protection would refuse it',
    )
    .argument('<type/name>', 'a deployment, replicaset, statefulset or replicationcontroller, such as deployment/web')
    .requiredOption('--replicas <n>', 'the new number of replicas', parseWholeNumber)
    .option('-n, --namespace <namespace>', 'namespace of the workload; default: default')
    .option(
      '--cluster <name>',
      'UpstreamCluster of the workload, or a federated one with -n MEMBER--NAMESPACE, or the name of a cell; default: PodProtectors are not evaluated',
    )
    .option(
      '--pod-kubeconfig <file>',
      'kubeconfig of the cluster of the workload; default: with --cluster as in protect why, otherwise --kubeconfig',
    )
    .option('--pod-context <name>', "context to use; default: the kubeconfig's current one")
    .option(
      '--stale-after <duration>',
      '--protection-stale-after of the gateway; default: the cells that it has marked are stale',
    )
    .option('--clock-skew <duration>', '--protection-clock-skew of the gateway')
    .option('--max-concurrent-lag <n>', '--protection-max-concurrent-lag of the gateway', parseWholeNumber)
    .option('-o, --output <format>', 'json; default: print a table')
    .action(async (target, options) => done((await import('./why.ts')).scaleWhy({ ...options, target, now, out, err })))
  forClusters(scale.command('status'))
    .description('show the cluster-autoscalers of all clusters and their node groups; exit with 1 if one is unhealthy')
    .option('--cluster <name>', 'only this UpstreamCluster, or the members of this federated one')
    .option('-o, --output <format>', 'json; default: print a table')
    .action(async (clusters, options) =>
      done((await import('./status.ts')).scaleStatus({ ...options, clusters, now, out, err })),
    )
}
