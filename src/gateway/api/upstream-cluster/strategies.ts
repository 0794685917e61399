// The single list of balancing strategies, from which type, schema, CRD and `kubectl explain` derive; each one's algorithm is a row of PICKERS in
// src/gateway/core/endpoints/pick-endpoint.ts.

export const STRATEGIES = ['RoundRobin', 'Random', 'LeastRequest', 'Affinity'] as const

export type Strategy = (typeof STRATEGIES)[number]
