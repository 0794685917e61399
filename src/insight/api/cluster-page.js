// What `/api/v1/clusters/NAME` answers: one cluster in full.
