/** States of jobs in all stores. */
export const TRIES = 3;
/** The contract's VoiceprintProfilesStatusJobState numbers. */
export const FAILED_STATE = 4;
export const UNFINISHED_STATES: readonly number[] = [1, 2];
export const ENDED_STATES: readonly number[] = [3, FAILED_STATE];
