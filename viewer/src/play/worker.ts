// The worker of a page that trains: it sends each moment of the training that it is asked for.
import { trained, type TrainingOptions } from "./training";

self.onmessage = ({ data }: MessageEvent<TrainingOptions>) => {
  for (const moment of trained(data)) self.postMessage(moment);
};
