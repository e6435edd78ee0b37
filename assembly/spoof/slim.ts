/** A residual network over log-mel with few blocks (`training/spoof/slim.py`): what the narrow network misses, above all over telephone lines. */
import { create } from "../memory";
import { Dense } from "../nn/dense";
import { Loading, createDense } from "../nn/loading";
import { statistics, trunk } from "../speaker/resnet/network";
import { Planes, statisticsOf } from "../speaker/resnet/state";
import { Trunk, createTrunk } from "../speaker/resnet/weights";
import { HIDDEN, OUTPUTS } from "./config";

@unmanaged
export class Slim {
  trunk: Trunk;
  hidden: Dense;
  out: Dense;
}

export function createSlim(loading: Loading, shape: usize): Slim {
  const w = create<Slim>();
  w.trunk = createTrunk(loading, shape);
  w.hidden = createDense(loading, HIDDEN, statisticsOf(shape), true);
  w.out = createDense(loading, OUTPUTS, HIDDEN, true);
  return w;
}

/** Mean and deviation over time of the last stage, of log-mel in `plane`. */
export function slimStatistics(out: usize, w: Slim, s: Planes, plane: usize, frames: i32): void {
  const steps = trunk(w.trunk, s, plane, frames);
  statistics(out, s, steps);
}
