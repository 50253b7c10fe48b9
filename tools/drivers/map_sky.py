"""Makes a map of the sky from noisy samples, by the destriper of litebird_sim.

map_sky.py NSIDE HOURS ITERATIONS. Each rank has some of the hours. The map of 12 NSIDE² pixels is
summed over all ranks in each iteration of the conjugate gradients."""

import sys
import time

import litebird_sim as lbs
import numpy as np
from mpi4py import MPI

nside, hours, iterations = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
world = MPI.COMM_WORLD
simulation = lbs.Simulation(
    base_path="output",
    start_time=0,
    duration_s=hours * 3600,
    random_seed=12345,
    imo=lbs.Imo(flatfile_location=lbs.PTEP_IMO_LOCATION),
)
simulation.set_scanning_strategy(
    lbs.SpinningScanningStrategy(
        spin_sun_angle_rad=np.deg2rad(45),
        precession_rate_hz=1 / (192.348 * 60),
        spin_rate_hz=0.05 / 60,
    ),
    delta_time_s=60,
)
simulation.set_instrument(
    lbs.InstrumentInfo(name="telescope", spin_boresight_angle_rad=np.deg2rad(50))
)
detectors = [
    lbs.DetectorInfo(
        name=f"detector {number}", sampling_rate_hz=10, net_ukrts=50, fknee_mhz=50, alpha=1
    )
    for number in range(2)
]
simulation.create_observations(detectors=detectors, num_of_obs_per_detector=world.size)
simulation.prepare_pointings()
simulation.add_noise(noise_type="one_over_f")


def map_sky(most: int):
    parameters = lbs.DestriperParameters(
        output_coordinate_system=lbs.CoordinateSystem.Galactic, iter_max=most, threshold=1e-12
    )
    return lbs.make_destriped_map(
        nside=nside, observations=simulation.observations, components=["tod"], params=parameters
    )


map_sky(2)  # compiles the code that is measured below
world.Barrier()
began = time.perf_counter()
found = map_sky(iterations)
world.Barrier()
seconds = time.perf_counter() - began
if world.rank == 0:
    for number, factor in enumerate(found.history_of_stopping_factors):
        print(f"result residual-{number}", repr(float(factor)))
    print("result rms", repr(float(np.nanstd(found.destriped_map))))
    print("seconds", seconds)
